"""People on this host: the user that a person's certificate makes of them, and how long a session lasts.

The numbers are of nobody else: above what containers take for themselves, below what programs take for negative. Such a
user is in no file of the host; `enter.sh` makes it for one session, and `sessions.py` finds what belongs to it.
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
