"""The parts of a generated test that are the same for every class.

``@@`` marks what is put in: the names of the methods and of the model's maker, a step, arguments.
"""

LICENSE = """\
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: Copyright contributors to the vLLM project
"""

BARE = '''
def _bare(cls):
    """An instance of its own class without the layers that ``__init__`` builds."""
    module = object.__new__(cls)
    nn.Module.__init__(module)
    return module
'''

RANDOM = '''
def _randomized(module, seed):
    """Gains that differ: an argmax does not see a norm whose gains are all the same."""
    generator = torch.Generator().manual_seed(100 + seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(1.0, 0.5, generator=generator)
    return module
'''

MAKE_HEAD = '''
def _make_head(cls, shard, seed, **kwargs):
    """One rank's head. Rows of padding would win every time if they counted."""
    vocab_size, rank, tp_size, tied = shard
    with (
        mock.patch(f"{_EMBEDDING}.get_tensor_model_parallel_rank", return_value=rank),
        mock.patch(
            f"{_EMBEDDING}.get_tensor_model_parallel_world_size", return_value=tp_size
        ),
    ):
        head = cls(vocab_size, HIDDEN_SIZE, **kwargs)
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(vocab_size, HIDDEN_SIZE, generator=generator)
    if tied:
        # Every token has the same logit, exactly: the first of the hidden state.
        weight = torch.zeros(vocab_size, HIDDEN_SIZE)
        weight[:, 0] = 1.0
    head.weight_loader(head.weight, weight)
@@BIAS    num_pad = head.shard_indices.num_org_vocab_padding
    if num_pad:
        large = 100 * torch.randn(num_pad // 2, HIDDEN_SIZE, generator=generator)
        with torch.no_grad():
            head.weight[-num_pad:] = torch.cat([large, -large])
    head.quant_method.process_weights_after_loading(head)
    return head
'''

BIAS = """\
    if head.bias is not None:
        bias = torch.randn(vocab_size, generator=generator)
        head.weight_loader(head.bias, torch.zeros(vocab_size) if tied else bias)
"""

TABLE = '''
def _make_table(vocab_size):
    """Offsets from draft ids to target ids, of which there are twice as many."""
    return nn.Parameter(torch.arange(vocab_size), requires_grad=False)
'''

REDUCE = '''
def _top_tokens(models, hidden_states, method, **kwargs):
    """What the ranks agree on: each gathers the pairs of all, in the order of ranks."""
    pairs = []

    def collect(pair, dim=-1):
        pairs.append(pair)
        return torch.cat([pair] * len(models), dim=dim)

    gather = f"{_PROCESSOR}.tensor_model_parallel_all_gather"
    with mock.patch(gather, side_effect=collect):
        tokens = [getattr(model, method)(hidden_states, **kwargs) for model in models]
    if len(models) == 1:
        assert not pairs
        return tokens[0]
    gathered = torch.cat(pairs, dim=-1)
    with mock.patch(gather, return_value=gathered):
        tokens = [getattr(model, method)(hidden_states, **kwargs) for model in models]
    assert all(torch.equal(tokens[0], other) for other in tokens)
    return tokens[0]


def _hidden_states(num_tokens, seed=11):
    generator = torch.Generator().manual_seed(seed)
    hidden_states = torch.randn(num_tokens, HIDDEN_SIZE, generator=generator)
    return hidden_states.to(DEVICE_TYPE)


def _assert_selects_max_logit(top, logits):
    """No other token of the row has a larger logit; any of several that tie will do."""
    assert top.dtype == torch.int64
    assert top.shape == (logits.shape[0],)
    selected = logits.gather(1, top.unsqueeze(1)).squeeze(1)
    torch.testing.assert_close(selected, logits.max(dim=-1).values, rtol=0, atol=1e-4)
'''

TESTS = [
    '''
@@MAKERS
@@STEPS
@pytest.mark.parametrize("tp_size", [1, 2, 4])
@pytest.mark.parametrize("num_tokens", [1, 7, 64, 1024])
def test_selects_what_the_full_argmax_selects(default_vllm_config@@ARGUMENTS, num_tokens, tp_size):
    """The same draft token as with the reduction off, whatever the number of shards."""
    hidden_states = _hidden_states(num_tokens)
    whole = @@MAKE(512)
    logits = whole.@@LOGITS(hidden_states.clone()@@STEP)
    ranks = [@@MAKE(512, rank, tp_size) for rank in range(tp_size)]
    top = _top_tokens(ranks, hidden_states, "@@TOP"@@STEP)
    _assert_selects_max_logit(top, logits)
''',
    '''
@@MAKERS
@@STEPS
@pytest.mark.parametrize("tp_size", [1, 2, 4])
def test_padding_of_the_vocabulary_never_wins(default_vllm_config@@ARGUMENTS, tp_size):
    """500 tokens are padded to 512 rows of the head, whose logits are the largest."""
    hidden_states = _hidden_states(64)
    whole = @@MAKE(500)
    logits = whole.@@LOGITS(hidden_states.clone()@@STEP)
    ranks = [@@MAKE(500, rank, tp_size) for rank in range(tp_size)]
    top = _top_tokens(ranks, hidden_states, "@@TOP"@@STEP)
    assert int(top.max()) < logits.shape[-1]
    _assert_selects_max_logit(top, logits)
''',
]

TIES = """
@@MAKERS
@@STEPS
@pytest.mark.parametrize("tp_size", [1, 2, 4])
def test_a_tie_across_shards_goes_to_the_first(default_vllm_config@@ARGUMENTS, tp_size):
    \"\"\"All tokens tie: every shard has a candidate, and the full argmax takes 0.\"\"\"
    hidden_states = _hidden_states(64)
    whole = @@MAKE(512, tied=True)
    logits = whole.@@LOGITS(hidden_states.clone()@@STEP)
    ranks = [@@MAKE(512, rank, tp_size, tied=True) for rank in range(tp_size)]
    top = _top_tokens(ranks, hidden_states, "@@TOP"@@STEP)
    assert torch.equal(top, logits.argmax(dim=-1))
"""

DEFAULT_STEP = '''
def test_a_caller_may_leave_out_the_step(default_vllm_config):
    """Without a step both methods take the same one."""
    hidden_states = _hidden_states(64)
    model = @@MAKE(512)
    logits = model.@@LOGITS(hidden_states.clone())
    top = model.@@TOP(hidden_states)
    _assert_selects_max_logit(top, logits)
    assert torch.equal(top, model.@@TOP(hidden_states, @@STEP=0))
'''
