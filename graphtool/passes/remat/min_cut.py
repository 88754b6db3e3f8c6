"""The minimum cut between a source and a sink by Dinic's method, in integers."""

from __future__ import annotations

from collections import deque


class Network:
    """A flow network: nodes are numbers from 0; add edges with a capacity, then call `cut`."""

    def __init__(self, count: int) -> None:
        self.out: list[list[int]] = [[] for _ in range(count)]
        self.head: list[int] = []
        self.room: list[int] = []

    def edge(self, a: int, b: int, capacity: int) -> None:
        """Add an edge and its reverse, which has capacity 0 and the next edge number."""
        for start, end, room in ((a, b, capacity), (b, a, 0)):
            self.out[start].append(len(self.head))
            self.head.append(end)
            self.room.append(room)

    def cut(self, source: int, sink: int) -> set[int]:
        """The nodes on the source's side of the minimum cut, of several the one closest to the
        source."""
        while True:
            level = self._levels(source)
            if level[sink] < 0:
                return {n for n, at in enumerate(level) if at >= 0}
            nexts = [0] * len(self.out)
            while self._push(source, sink, level, nexts):
                pass

    def _levels(self, source: int) -> list[int]:
        """The number of edges from the source to each node in the residual graph; −1 if it
        cannot be reached."""
        level = [-1] * len(self.out)
        level[source] = 0
        queue = deque([source])
        while queue:
            a = queue.popleft()
            for e in self.out[a]:
                if self.room[e] > 0 and level[self.head[e]] < 0:
                    level[self.head[e]] = level[a] + 1
                    queue.append(self.head[e])
        return level

    def _push(self, source: int, sink: int, level: list[int], nexts: list[int]) -> bool:
        """Send flow along one shortest path; `nexts` remembers the edges of a node that lead
        nowhere."""
        path: list[int] = []
        at = source
        while at != sink:
            while nexts[at] < len(self.out[at]):
                e = self.out[at][nexts[at]]
                if self.room[e] > 0 and level[self.head[e]] == level[at] + 1:
                    break
                nexts[at] += 1
            else:
                if not path:
                    return False
                at = self.head[path.pop() ^ 1]
                nexts[at] += 1
                continue
            path.append(e)
            at = self.head[e]
        least = min(self.room[e] for e in path)
        for e in path:
            self.room[e] -= least
            self.room[e ^ 1] += least
        return True
