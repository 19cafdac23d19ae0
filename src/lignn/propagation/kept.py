"""What a module has computed for an operator and need not compute again."""

from __future__ import annotations

from typing import Any, Self, TypeVar
from weakref import WeakKeyDictionary

from lignn.propagation.adjacency import Adjacency

T = TypeVar("T")


class Kept(WeakKeyDictionary[Adjacency, T]):
    """Values by operator, for as long as that lives; a copy or pickle of the module finds its own."""

    def __deepcopy__(self, memo: Any) -> Self:
        return type(self)()

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()
