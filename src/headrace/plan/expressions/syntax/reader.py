"""A cursor over tokens, with errors that name the expected and the found token."""

from __future__ import annotations

from headrace.core.errors import PlanError
from headrace.plan.expressions.syntax.nodes import Span
from headrace.plan.expressions.syntax.problems import syntax_error
from headrace.plan.expressions.syntax.tokens import Token, tokens


class TokenReader:
    """Reads tokens one by one; `where` is the user's file and line, for errors."""

    def __init__(self, text: str, where: str | None) -> None:
        self.text = text
        self.where = where
        self._tokens = tokens(text, where)
        self._next = 0

    @property
    def token(self) -> Token:
        return self._tokens[self._next]

    def after(self, steps: int = 1) -> Token:
        """The token `steps` after the current one."""
        return self._tokens[min(self._next + steps, len(self._tokens) - 1)]

    def take(self) -> Token:
        token = self.token
        if token.kind != "end":
            self._next += 1
        return token

    def accept(self, *words: str) -> bool:
        """Take the next tokens if they are exactly these keywords or signs."""
        if all(self.after(step).says(word) for step, word in enumerate(words)):
            self._next += len(words)
            return True
        return False

    def expect(self, word: str) -> Token:
        if not self.token.says(word):
            raise self.wrong(f"expected {word!r}")
        return self.take()

    def name(self) -> str:
        """Take a name, quoted or not."""
        if self.token.kind not in ("word", "quoted"):
            raise self.wrong("expected a name")
        return self.take().text

    def finish(self) -> None:
        if self.token.kind != "end":
            raise self.wrong("expected an operator or the end")

    def since(self, start: int) -> Span:
        """The span from `start` to the end of the last token taken."""
        return Span(start, self._tokens[self._next - 1].end)

    def wrong(self, what: str) -> PlanError:
        found = "the end" if self.token.kind == "end" else repr(self.text[self.token.start : self.token.end])
        return syntax_error(self.text, self.token.start, f"{what}, found {found}", self.where)

    @property
    def place(self) -> int:
        return self._next

    def back_to(self, place: int) -> None:
        self._next = place
