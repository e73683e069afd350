"""A small agent that fails in an instructive way, and the scripted model it talks to.

``reenact demo`` runs both offline. The agent dies because a booking is over budget; the cause stands
a few steps earlier in the trace: one price came back in cents and everybody took it for euros.
"""
