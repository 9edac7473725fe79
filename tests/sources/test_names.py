from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.sources.names import normalised, printable, unsafe_reason


@pytest.mark.parametrize(
    "name",
    ["vllm/a.py", "./vllm/a.py", "vllm//a.py", "vllm/..a.py", "vllm/a..b", "vllm/é.py", "a b"],
)
def test_a_name_below_the_root_is_safe(name: str) -> None:
    assert unsafe_reason(name) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../x", "(..)"),
        ("vllm/../../x", "(..)"),
        ("vllm/..", "(..)"),
        ("..\\x", "(..)"),
        ("/etc/passwd", "absolute"),
        ("\\\\server\\share", "absolute"),
        ("C:\\x.py", "absolute"),
        ("c:x.py", "absolute"),
        ("C:/x.py", "absolute"),
        ("vllm/a\\b.py", "backslash"),
        ("vllm/a\nb.py", "control"),
        ("vllm/a\0b.py", "control"),
        ("vllm/\udce9.py", "UTF-8"),
    ],
)
def test_a_name_that_could_lead_astray_has_a_reason(name: str, reason: str) -> None:
    assert reason in (unsafe_reason(name) or "")


@given(st.text(alphabet=st.sampled_from("ab./\\:C\n\udce9")))
def test_a_safe_name_stays_below_the_root(name: str) -> None:
    if unsafe_reason(name) is None:
        joined = posixpath.normpath(posixpath.join("/base", normalised(name)))
        assert joined == "/base" or joined.startswith("/base/")


@given(st.text(alphabet=st.characters(min_codepoint=0, max_codepoint=0xDFFF)))
def test_any_name_can_be_shown(name: str) -> None:
    raw = name.encode("utf-8", "surrogatepass")
    shown = printable(raw.decode("utf-8", "surrogateescape"))
    shown.encode("utf-8")
    assert "\n" not in shown
    assert "\x1b" not in shown
