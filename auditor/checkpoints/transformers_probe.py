"""A script for a Python that has Transformers: what its configuration classes make of a dict.

It reads one JSON request a line and answers each with one line. No code of a checkpoint is run:
``auto_map`` is taken out, classes come from Transformers' own table alone, nothing is downloaded.
It is not part of the package's import graph and imports nothing of it.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
if not sys.flags.safe_path and sys.path and __name__ == "__main__":
    del sys.path[0]  # this script's own folder

_PLAIN = (type(None), bool, int, float, str)
_MARK = "$kind"


def class_of_type(model_type: object) -> str | None:
    """The name of the class for a model type, or None."""
    from transformers import CONFIG_MAPPING  # type: ignore[import-not-found,unused-ignore]

    if not isinstance(model_type, str) or model_type not in CONFIG_MAPPING:
        return None
    return str(CONFIG_MAPPING[model_type].__name__)


def find_class(name: str) -> Any:
    """A configuration class by its own name."""
    import transformers  # type: ignore[import-not-found,unused-ignore]

    found = getattr(transformers, name, None)
    if found is None:
        from transformers import CONFIG_MAPPING  # type: ignore[import-not-found,unused-ignore]

        found = next(
            (CONFIG_MAPPING[one] for one in CONFIG_MAPPING if CONFIG_MAPPING[one].__name__ == name),
            None,
        )
    base = getattr(transformers, "PreTrainedConfig", None) or transformers.PretrainedConfig
    if not isinstance(found, type) or not issubclass(found, base):
        raise LookupError(name)
    return found


def encoded(value: Any, depth: int = 0) -> Any:
    """A value as JSON; what is neither data nor a configuration is marked as opaque."""
    if type(value) in _PLAIN:
        return value
    if depth > 60:
        return {_MARK: "opaque", "what": "nested too deeply"}
    if type(value) is list:
        return [encoded(one, depth + 1) for one in value]
    if type(value) in (tuple, set, frozenset):
        items = sorted(value, key=repr) if type(value) is not tuple else value
        return {_MARK: type(value).__name__, "items": [encoded(one, depth + 1) for one in items]}
    if isinstance(value, dict):
        pairs = [[encoded(k, depth + 1), encoded(v, depth + 1)] for k, v in value.items()]
        return {_MARK: "dict", "items": pairs}
    if (
        not isinstance(value, type)
        and hasattr(value, "to_dict")
        and hasattr(value, "attribute_map")
    ):
        return described(value, depth + 1)
    return {_MARK: "opaque", "what": type(value).__name__}


def names_used(function: Any) -> set[str]:
    """The names that a function's code uses, which may be attributes that it changes."""
    code = inspect.unwrap(function).__code__
    return {*code.co_names, *(one for one in code.co_consts if isinstance(one, str))}


def described(config: Any, depth: int = 0) -> dict[str, Any]:
    """A configuration with its attributes, and what its class has beside them."""
    cls = type(config)
    attributes: dict[str, Any] = {}
    computed: list[str] = []
    properties: dict[str, property] = {}
    for base in reversed(cls.__mro__):
        for key, value in vars(base).items():
            if key.startswith("__") or key == "attribute_map":
                continue
            if inspect.isroutine(value) or isinstance(value, (property, classmethod, staticmethod)):
                computed.append(key)
                if isinstance(value, property):
                    properties[key] = value
            elif type(value) in (*_PLAIN, list, dict, tuple):
                attributes[key] = value
    return {
        _MARK: "config",
        "class": cls.__name__,
        "order": [base.__name__ for base in cls.__mro__],
        "attribute_map": dict(cls.attribute_map),
        "class_attributes": {key: encoded(value, depth) for key, value in attributes.items()},
        "computed": sorted(set(computed)),
        "read_only": sorted(key for key, one in properties.items() if one.fset is None),
        "setters": {
            key: sorted(names_used(one.fset)) for key, one in sorted(properties.items()) if one.fset
        },
        "attributes": {key: encoded(value, depth) for key, value in vars(config).items()},
    }


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request."""
    import transformers  # type: ignore[import-not-found,unused-ignore]

    match request["ask"]:
        case "version":
            return {"version": transformers.__version__}
        case "class":
            return {"name": class_of_type(request["model_type"])}
        case "names":
            from transformers.models.auto import modeling_auto  # type: ignore[import-not-found,unused-ignore]

            found = modeling_auto.MODEL_MAPPING_NAMES.get(request["model_type"])
            return {"names": encoded(found)}
        case "construct":
            named = {key: value for key, value in request["named"].items() if key != "auto_map"}
            cls = find_class(request["name"])
            try:
                return {"config": described(cls(**named))}
            except Exception as error:  # noqa: BLE001 - what a constructor raises is the answer
                return {"error": {"type": type(error).__name__, "message": str(error)}}
    return {}


def main() -> None:
    """Answer until nothing is asked any more."""
    lines, out = sys.stdin, os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print does not meet the answers
    for line in lines:
        try:
            said = answer(json.loads(line))
        except Exception as error:  # noqa: BLE001 - said to whoever asks
            said = {"failed": f"{type(error).__name__}: {error}"}
        out.write(json.dumps(said) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
