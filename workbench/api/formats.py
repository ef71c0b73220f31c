"""What form an answer must have: `response_format` and `tools` of a request, read and undone.

Sources: OpenAI's API reference, structured outputs and function calling. Calls are written as Qwen
and Hermes are trained to write them, <tool_call>{"name": …, "arguments": …}</tool_call>.
"""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.core.errors import BadInput
from engine.models.text.grammar import ANY_OBJECT, CLOSES, OPENS, GrammarGuide, Grammars

TOOLS = 128
Json = dict[str, Any]


@dataclass(frozen=True)
class Format:
    """`schema`: JSON that the answer must be; `tools`: functions it may, or `must`, call."""

    schema: Json | None = None
    tools: tuple[Json, ...] = ()
    must: bool = False

    @property
    def calls(self) -> list[Json]:
        """The schema of a call of each function."""
        return [_call(tool["function"], place) for place, tool in enumerate(self.tools)]

    def guide(self, grammars: Grammars) -> GrammarGuide | None:
        """What holds an answer to this form; None where any text will do."""
        if self.tools and self.must:
            return grammars.schema({"anyOf": self.calls})
        if self.tools:
            return grammars.calls(self.calls)
        return None if self.schema is None else grammars.schema(self.schema)

    @property
    def free(self) -> bool:
        return self.schema is None and not self.tools

    def undone(self, text: str) -> tuple[str, list[Json]]:
        """The text of an answer without its calls, and the calls; cut short, it is all text."""
        if not self.tools:
            return text, []
        parts = [text] if self.must else []
        rest = ""
        if not self.must:
            rest, *after = text.split(OPENS)
            for part in after:
                call, closed, more = part.partition(CLOSES)
                if not closed:
                    return text, []
                parts.append(call)
                rest += more
        try:
            calls = [json.loads(part) for part in parts]
            return rest.strip("\n"), [_told(call) for call in calls]
        except (ValueError, KeyError, TypeError):
            return text, []


def _call(function: Json, place: int) -> Json:
    parameters = _moved(function.get("parameters") or ANY_OBJECT, place)
    return {
        "type": "object",
        "properties": {"name": {"const": function["name"]}, "arguments": parameters},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _moved(schema: Any, place: int) -> Any:
    """A function's schema as it stands in `anyOf`: its references to itself lead there."""
    if isinstance(schema, list):
        return [_moved(one, place) for one in schema]
    if not isinstance(schema, dict):
        return schema
    moved = {name: _moved(value, place) for name, value in schema.items()}
    target = schema.get("$ref")
    if isinstance(target, str) and (target == "#" or target.startswith("#/")):
        moved["$ref"] = f"#/anyOf/{place}/properties/arguments{target[1:]}"
    return moved


def _told(call: Json) -> Json:
    arguments = json.dumps(call["arguments"], ensure_ascii=False)
    function = {"name": call["name"], "arguments": arguments}
    return {"id": f"call_{uuid.uuid4().hex[:24]}", "type": "function", "function": function}


def response_format(fields: Json) -> Format:
    """What `response_format` asks for. Raises BadInput."""
    asked = fields.get("response_format")
    if asked is None:
        return Format()
    kind = asked.get("type") if isinstance(asked, dict) else None
    if kind == "text":
        return Format()
    if kind == "json_object":
        return _alone(Format(ANY_OBJECT), fields, "response_format")
    if kind != "json_schema":
        raise BadInput("response_format: its type is text, json_object or json_schema")
    held = asked.get("json_schema", asked)  # the responses route has the schema one level up
    schema = held.get("schema") if isinstance(held, dict) else None
    if not isinstance(schema, dict):
        raise BadInput("response_format: give json_schema with an object named schema")
    return _alone(Format(schema), fields, "response_format")


def tools(fields: Json) -> Format:
    """What `tools` and `tool_choice` ask for, else `response_format`. Raises BadInput."""
    asked, choice = fields.get("tools"), fields.get("tool_choice")
    if not asked:
        if choice not in (None, "none", "auto"):
            raise BadInput("tool_choice: there are no tools to choose from")
        return response_format(fields)
    if not isinstance(asked, list) or len(asked) > TOOLS:
        raise BadInput(f"tools: give a list of at most {TOOLS}")
    given = tuple(_tool(tool) for tool in asked)
    if choice == "none":
        return response_format(fields)
    if response_format(fields).schema is not None:
        raise BadInput("response_format: cannot be asked for together with tools; leave out one")
    if choice not in (None, "auto", "required"):
        given = _chosen(given, choice)
    return _alone(Format(None, given, choice not in (None, "auto")), fields, "tools")


def _chosen(given: Sequence[Json], choice: Any) -> tuple[Json, ...]:
    function = choice.get("function") if isinstance(choice, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    found = tuple(tool for tool in given if tool["function"]["name"] == name)
    if not found:
        raise BadInput("tool_choice: give none, auto, required, or the name of one of the tools")
    return found


def _tool(tool: Any) -> Json:
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict) or tool.get("type", "function") != "function":
        raise BadInput("tools: each is an object of type function with its function")
    name, parameters = function.get("name"), function.get("parameters")
    if not isinstance(name, str) or not 0 < len(name) <= 64:
        raise BadInput("tools: each function needs a name of at most 64 characters")
    if parameters is not None and not isinstance(parameters, dict):
        raise BadInput("tools: the parameters of a function are a JSON schema, an object")
    return {"type": "function", "function": function}


def _alone(form: Format, fields: Json, what: str) -> Format:
    """Refuse what would keep an answer of this form from ending."""
    for name in ("min_tokens", "ignore_eos"):
        if fields.get(name):
            raise BadInput(f"{name}: cannot be asked for together with {what}; leave out one")
    return form
