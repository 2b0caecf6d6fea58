"""The processes of a job: the role of this process, its server, and the connections to the others.

`roles.py` and `environments/` say which process this is; `server.py` starts its TensorFlow server and exchanges
messages with the others through `key_value_store.py`; `membership.py` checks that all processes have the same host
lists; `connectivity.py` explains why a process cannot be reached; `peers.py` notices when one dies; `ring.py` is the
all-reduce of the collective workers. Exported here: what other packages and custom environments need.
"""

from moxing.tensorflow.cluster.environments import current_role, register_environment
from moxing.tensorflow.cluster.roles import Role, RoleError

__all__ = ["Role", "RoleError", "current_role", "register_environment"]
