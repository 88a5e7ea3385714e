"""Sessions of people on this host: the Unix user of a person's certificate, and the time limit of a session.

The user ids are from a reserved range: above the ranges of containers, below the ids that programs read as negative.
The users are not in /etc/passwd; `enter.sh` creates a user for one session, and `sessions.py` finds its processes.
"""

from pathlib import Path

from gpuaas_agent.places import Places

FIRST_USER, USERS = 1_880_000_000, 250_000_000
LASTS_S = 8 * 3600


def user_of(serial: int) -> int:
    return FIRST_USER + serial % USERS


def enter_script() -> bytes:
    text = Path(__file__).with_name("enter.sh").read_text()
    for word, number in (("@FIRST_USER@", FIRST_USER), ("@USERS@", USERS), ("@LASTS_S@", LASTS_S)):
        text = text.replace(word, str(number))
    return text.encode()


def files(places: Places, principals: bytes) -> dict[Path, bytes]:
    return {
        places.ssh / "people": principals,
        places.ssh / "enter.sh": enter_script(),
    }
