"""A lifecycle as a table of all its transitions: state, action, next state.

The check of an action, the text of the 409, the actions shown to clients, the diagrams in `docs/reference/` and a test
for every state and action are derived from the table.
"""

from collections.abc import Collection

from .problems import Problem


class WrongMoment(Problem):
    status, code, title = 409, "wrong_state", "Action not possible in the current state"
    way_out = "Read the resource again: `available_actions` lists the actions that are possible now."


class Lifecycle:
    def __init__(self, noun: str, moves: dict[str, dict[str, str]], asked: Collection[str] | None = None) -> None:
        """Define the transitions. `asked`: the actions that people can request, which error messages offer; None: all
        actions."""
        self.noun = noun
        self.moves = moves
        self.asked = asked
        unknown = {to for row in moves.values() for to in row.values()} - set(moves)
        if unknown:
            raise ValueError(f"{noun}: states without a row: {sorted(unknown)}")

    def after(self, state: str, action: str) -> str:
        try:
            return self.moves[state][action]
        except KeyError:
            raise WrongMoment(
                f"The {self.noun} is {state}: {action!r} is not possible. Possible: {self._possible(state)}."
            ) from None

    def _possible(self, state: str) -> str:
        moves = self.moves.get(state, {})
        offered = sorted(move for move in moves if self.asked is None or move in self.asked)
        return ", ".join(offered) or (
            "nothing, until its state changes by itself" if moves else "nothing, this state is final"
        )

    def allows(self, state: str, action: str) -> bool:
        return action in self.moves.get(state, {})

    def terminal(self, state: str) -> bool:
        return not self.moves[state]

    @property
    def live_states(self) -> list[str]:
        return [state for state, row in self.moves.items() if row]
