# SPDX-License-Identifier: Apache-2.0
"""Bad weather: a process between two interfaces that brings every packet over late, and loses some.

Not every kernel has a queue that does this (netem). Packet sockets are everywhere, and work in a user's own namespace too.
"""

from __future__ import annotations

import array
import fcntl
import heapq
import random
import select
import socket
import struct
import time
from typing import List, Tuple

DELAY_SECONDS = 0.01
# Of a hundred packets; the same ones in every run, as far as the order of packets is the same.
LOST_PERCENT = 3
ETH_P_ALL = 3
SIOCETHTOOL = 0x8946
# Settings of an interface: checksums made by whoever sends, and no packets that are cut up only later.
SET_TX_CHECKSUMS, SET_SEGMENTATION, SET_GENERIC_SEGMENTATION, SET_SCATTER = 0x17, 0x1F, 0x24, 0x19


def keep_packets_whole(interface: str) -> None:
    """What is sent there is as it would be on a cable."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for setting in (SET_TX_CHECKSUMS, SET_SEGMENTATION, SET_GENERIC_SEGMENTATION, SET_SCATTER):
            value = array.array("B", struct.pack("II", setting, 0))
            request = struct.pack("16sP8x", interface.encode(), value.buffer_info()[0])
            try:
                fcntl.ioctl(any_socket, SIOCETHTOOL, request)
            except OSError:
                # Off already, with another one.
                pass


def relay(left: str, right: str) -> None:
    """For ever. Neighbours are told of each other without loss: waiting for that says nothing about anybody."""
    sockets = []
    for name in (left, right):
        one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        one.bind((name, ETH_P_ALL))
        sockets.append(one)
    chance = random.Random(1)
    waiting: List[Tuple[float, int, int, bytes]] = []
    number = 0
    while True:
        pause = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        ready, _, _ = select.select(sockets, [], [], pause)
        for one in ready:
            packet, sender = one.recvfrom(65536)
            is_ours = sender[2] == socket.PACKET_OUTGOING
            is_for_neighbours = packet[12:14] == b"\x08\x06"
            if not is_ours and (is_for_neighbours or chance.uniform(0, 100) >= LOST_PERCENT):
                number += 1
                heapq.heappush(waiting, (time.monotonic() + DELAY_SECONDS, number, 1 - sockets.index(one), packet))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, to, packet = heapq.heappop(waiting)
            try:
                sockets[to].send(packet)
            except OSError:
                # Too long for a cable, or nobody is there any more.
                pass
