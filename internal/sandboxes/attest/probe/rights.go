package probe

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

func sorted(all []string) []string {
	slices.Sort(all)
	return all
}

// rights asks for every capability, for the way to new privileges, and to be root.
func rights(say teller) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	all := [2]unix.CapUserData{{Effective: ^uint32(0), Permitted: ^uint32(0)}, {Effective: ^uint32(0), Permitted: ^uint32(0)}}
	asked := unix.Capset(&header, &all[0])
	unprivileged := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0)
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		say.tellGot(Capabilities, "/proc/self/status can't be read: %v", err)
		return
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(status)) {
		if key, value, found := strings.Cut(line, ":"); found {
			fields[key] = strings.TrimSpace(value)
		}
	}
	var some []string
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		if strings.Trim(fields[set], "0") != "" || fields[set] == "" {
			some = append(some, fmt.Sprintf("%s %q", set, fields[set]))
		}
	}
	if len(some) > 0 {
		say.tellGot(Capabilities, "%s", strings.Join(some, ", "))
	} else {
		say.tellRefused(Capabilities, "all five sets are empty; asked for all: %s", errorWord(asked))
	}
	if fields["NoNewPrivs"] != "1" {
		say.tellGot(Privileges, "no_new_privs is %q", fields["NoNewPrivs"])
	} else {
		say.tellRefused(Privileges, "no_new_privs is 1; asked to take it back: %s", errorWord(unprivileged))
	}
	otherUser(say)
}

// otherUser tries to become root; who is root tries nothing.
func otherUser(say teller) {
	was := os.Getuid()
	if was == 0 {
		return
	}
	asked := unix.Setresuid(0, 0, 0)
	if os.Getuid() != was || os.Geteuid() != was {
		say.tellGot(OtherUser, "user %d became user %d", was, os.Geteuid())
		return
	}
	say.tellRefused(OtherUser, "it is user %d; asked to be root: %s", was, errorWord(asked))
}

func errorWord(err error) string {
	if err == nil {
		return "no answer but no effect either"
	}
	return err.Error()
}

// setClock sets the clock to what it is.
func setClock(say teller) {
	var now unix.Timeval
	if err := unix.Gettimeofday(&now); err != nil {
		say.tellGot(Clock, "it can't be read: %v", err)
		return
	}
	if err := unix.Settimeofday(&now); err != nil {
		say.tellRefused(Clock, "asked to set it: %v", err)
		return
	}
	say.tellGot(Clock, "it was set")
}

// channelOf looks for a way to the one connection that leads out, which is PID 1's.
func channelOf(say teller) {
	own, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		say.tellGot(Channel, "the process's own descriptors can't be listed: %v", err)
		return
	}
	for _, e := range own {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			say.tellGot(Channel, "descriptor %s is a socket, %s", e.Name(), to)
			return
		}
	}
	if all, err := os.ReadDir("/proc/1/fd"); err == nil {
		for _, e := range all {
			if _, err := os.Readlink("/proc/1/fd/" + e.Name()); err == nil {
				say.tellGot(Channel, "descriptor %s of process 1 can be followed", e.Name())
				return
			}
		}
	}
	if f, err := os.OpenFile("/proc/1/mem", os.O_RDWR, 0); err == nil {
		_ = f.Close()
		say.tellGot(Channel, "the memory of process 1 can be opened")
		return
	}
	err = unix.PtraceAttach(1)
	if err == nil {
		_ = unix.PtraceDetach(1)
		say.tellGot(Channel, "process 1 can be traced")
		return
	}
	say.tellRefused(Channel, "no descriptor of this process is a socket; process 1's can't be followed, nor its memory opened; asked to trace it: %v", err)
}

// kernel tells which one answers; the host knows whether it is its own.
func kernel(say teller) {
	version, err := os.ReadFile("/proc/version")
	if err != nil {
		say.tellGot(Kernel, "/proc/version can't be read: %v", err)
		return
	}
	say.tellRefused(Kernel, "%s", strings.TrimSpace(string(version)))
}
