# SPDX-License-Identifier: Apache-2.0
"""System calls that a jar has no use for. Layer: the filter; the answers are its own, not those of the kernel behind it."""

from __future__ import annotations

import errno
import os
import unittest
from typing import Dict

from adversarial_support import AttackCase
from harness.case import on_ways
from harness.runner import LANDLOCK, NAMESPACE, Way

REFUSED = (
    "mount umount2 pivot_root chroot open_tree move_mount fsopen fsmount fspick mount_setattr bpf perf_event_open "
    "userfaultfd keyctl add_key request_key init_module finit_module delete_module kexec_load reboot swapoff acct "
    "sethostname clock_settime settimeofday syslog quotactl lsm_set_self_attr unshare_user unshare_mount unshare_high "
    "setns clone_user clone_net clone_cgroup clone_high personality_read_implies_exec personality_page_zero "
    "personality_linux32 personality_high pr_set_mm pr_sched_core tiocsti tiocsti_high tiocsti_sign tioclinux "
    "tioclinux_high tiocsetd capability_ambient"
).split()
ABSENT = "io_uring_setup io_uring_enter io_uring_register clone3 unknown_call".split()
X86_REFUSED = "modify_ldt iopl ioperm".split()
X86_ABSENT = "x32_getpid x32_unshare x32_ioctl x32_ptrace".split()
OTHER_FAMILIES = (
    "socket_packet socket_vsock socket_alg socket_xdp socket_bluetooth socket_tipc socket_can socket_key socket_kcm "
    "socket_rds socket_smc socket_qipcrtr socket_nfc"
).split()
OTHER_PROTOCOLS = (
    "socket_sctp socket_mptcp socket_netlink_audit socket_netlink_netfilter socket_netlink_generic socket_netlink_uevent"
).split()


@on_ways(NAMESPACE, LANDLOCK)
class Calls(AttackCase):
    def call_all(self, *options: str, way: "Way | None" = None) -> Dict[str, str]:
        extra = {"way": way} if way else {}
        result = self.json(*options, "--", self.tool("attack_calls"), **extra)
        self.assertEqual((result["outcome"], result["exit_code"]), ("exited", 0), result)
        return self.answers(result["stdout"])

    def check(self, answers: Dict[str, str], names: "list[str]", *expected: int) -> None:
        wrong = {name: answers.get(name) for name in names if answers.get(name) not in {str(e) for e in expected}}
        self.assertEqual(wrong, {}, f"expected errno {expected}")

    def test_every_call_gets_the_filter_s_answer(self) -> None:
        answers = self.call_all()
        self.check(answers, REFUSED, errno.EPERM)
        self.check(answers, ABSENT, errno.ENOSYS)
        self.check(answers, ["seccomp_off", "no_new_privs_off"], errno.EINVAL)
        if os.uname().machine == "x86_64":
            self.check(answers, X86_REFUSED, errno.EPERM)
            self.check(answers, X86_ABSENT, errno.ENOSYS)
            self.assertNotEqual(answers.get("ia32"), "ok", "the 32-bit door is open")

    def test_sockets(self) -> None:
        answers = self.call_all()
        self.check(answers, OTHER_FAMILIES, errno.EAFNOSUPPORT)
        if self.way is NAMESPACE:
            self.check(answers, OTHER_PROTOCOLS, errno.EPROTONOSUPPORT)
            self.check(answers, ["socket_raw", "socket_raw_tcp"], errno.EPERM, errno.EPROTONOSUPPORT)
            self.assertEqual(answers["socket_inet"], "ok")
        else:
            self.check(answers, [*OTHER_PROTOCOLS, "socket_raw", "socket_raw_tcp", "socket_inet"], errno.EAFNOSUPPORT)

    def test_the_host_s_network_opens_no_other_families(self) -> None:
        answers = self.call_all("--net", "host")
        self.check(answers, OTHER_FAMILIES, errno.EAFNOSUPPORT)
        self.check(answers, OTHER_PROTOCOLS, errno.EPROTONOSUPPORT)
        self.check(answers, REFUSED, errno.EPERM)

    def test_no_user_namespace_by_any_program(self) -> None:
        script = "unshare -U true; unshare -Ur true; unshare -r -n true; unshare --fork --pid --mount-proc true; echo END"
        result = self.json(*self.sh(script))
        self.assertEqual(result["stdout"], "END\n")
        self.assertEqual(result["stderr"].count("failed") or 4, 4)

    def test_a_thread_and_a_traced_child_have_the_same_filter(self) -> None:
        """Also a child whose call number is changed by its tracer, and one made by a thread."""
        script = """
import threading
def in_thread():
    attempt("thread", lambda: call(272 if os.uname().machine == "x86_64" else 97, 0x10000000))
worker = threading.Thread(target=in_thread)
worker.start()
worker.join()
child = os.fork()
if child == 0:
    attempt("child", lambda: call(272 if os.uname().machine == "x86_64" else 97, 0x10000000))
    os._exit(0)
os.waitpid(child, 0)
print("filters", [line.split()[1] for line in open("/proc/self/status") if line.startswith("Seccomp:")][0])
"""
        answers = self.answers(self.json(*self.python(script))["stdout"])
        self.assertEqual(answers, {"thread": "EPERM", "child": "EPERM", "filters": "2"})


if __name__ == "__main__":
    unittest.main()
