import queue
import threading

from agent_loop import conversation


def lookup(city, days):
    return {"city": city, "rooms": 3 * days}


def book(hotel):
    raise ConnectionError(f"no route to {hotel}")


HANDLERS = {"lookup": lookup, "book": book}
work = queue.Queue()


def worker():
    while True:
        name, args, done = work.get()
        try:
            done.append((HANDLERS[name](**args), None))
        except Exception as exc:
            done.append((None, exc))
        work.task_done()


threading.Thread(target=worker, daemon=True).start()


def run(name, args):
    done = []
    work.put((name, args, done))
    work.join()
    result, exc = done[0]
    if exc is not None:
        raise exc
    return result


conversation(run)
