"""The ten best hits of many are all that is needed."""

from kit import Agent

JOBS = [{"job": n, "title": f"Data engineer {n}", "score": round(1 - n / 400, 3)} for n in range(1, 11)]


def search_jobs(query: str, limit: int = 10) -> dict:
    return {"hits": JOBS[:limit], "total": 381, "page": 1, "pages": 39}


def save_job(job: int) -> str:
    return "saved"


MODEL = [
    ("search_jobs", {"query": "data engineer remote"}),
    [("save_job", {"job": 1}), ("save_job", {"job": 2}), ("save_job", {"job": 3})],
    "I saved the three best of 381 matches: jobs 1, 2 and 3.",
]
LABEL = "passes"

if __name__ == "__main__":
    print(Agent(search_jobs, save_job).run("Save the three best matches for a remote data engineer."))
