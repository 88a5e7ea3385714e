"""A life as a table: state, action, next state. The table is the only place that knows the moves.

From it come the check, the text of the 409, the actions a reader is shown, the drawings in `docs/reference/`,
and a test for every state and action.
"""

from .problems import Problem


class WrongMoment(Problem):
    status, code, title = 409, "wrong_state", "Not possible in this state"
    way_out = "Read the resource again: `available_actions` says what is possible now."


class Lifecycle:
    def __init__(self, noun: str, moves: dict[str, dict[str, str]]) -> None:
        self.noun = noun
        self.moves = moves
        unknown = {to for row in moves.values() for to in row.values()} - set(moves)
        if unknown:
            raise ValueError(f"{noun}: states without a row: {sorted(unknown)}")

    def after(self, state: str, action: str) -> str:
        try:
            return self.moves[state][action]
        except KeyError:
            possible = ", ".join(sorted(self.moves.get(state, {}))) or "nothing, this state is final"
            raise WrongMoment(
                f"The {self.noun} is {state}: {action!r} is not possible now. Possible: {possible}."
            ) from None

    def allows(self, state: str, action: str) -> bool:
        return action in self.moves.get(state, {})

    def terminal(self, state: str) -> bool:
        return not self.moves[state]

    @property
    def live_states(self) -> list[str]:
        return [state for state, row in self.moves.items() if row]
