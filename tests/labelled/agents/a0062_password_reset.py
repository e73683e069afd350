"""A helpdesk agent tries the same failing call with small changes and gives up."""

from kit import Agent


def reset_password(user: str) -> str:
    raise PermissionError("directory is read-only during maintenance until 06:00")


FORMS = [
    "l.fischer",
    "lfischer",
    "L.Fischer",
    "l.fischer@example.com",
    "fischer",
    "CN=l.fischer",
    "lena.fischer",
    "l_fischer",
]
MODEL = [("reset_password", {"user": user}) for user in FORMS]
LABEL = (
    "turn limit",
    "the directory is read-only; the model tries other spellings until its turns are used up",
    *[f"result reset_password {n}" for n in range(1, 9)],
    *[f"call reset_password {n}" for n in range(2, 9)],
)

if __name__ == "__main__":
    print(Agent(reset_password, turns=8).run("Reset the password of l.fischer."))
