// Command probe attempts to leave a sandbox, in one way per sub-command. It is
// static, needs nothing around it, and reports in plain text what it saw, which
// no test believes. It does what a hostile program would do first and nothing
// that could harm a host on which it succeeds.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// attemptTimeout bounds each single attempt.
const attemptTimeout = 2 * time.Second

// errUsage is said where a sub-command lacks arguments.
var errUsage = errors.New("too few arguments")

// attempt is one sub-command.
type attempt struct {
	least int // arguments
	do    func(args []string) error
}

func attempts() map[string]attempt {
	return map[string]attempt{
		"batch": {1, batch},
		// network.go
		"tcp": {2, tcp}, "udp": {2, udp}, "scan": {3, scan}, "listen": {2, listen}, "unix": {2, unixSocket},
		// names.go
		"dns": {4, question}, "names": {3, names}, "connect": {3, connect}, "rewrite": {4, rewrite},
		// gateway.go
		"proxy": {4, proxy}, "https": {4, https}, "fetch": {2, fetch},
		// host.go
		"hello": {5, hello}, "smuggle": {4, smuggle}, "forge": {2, forge}, "channel": {2, channel},
		// raw.go
		"icmp": {2, icmp}, "rawip": {3, rawIP}, "packet": {1, packet}, "advertise": {1, advertise}, "sniff": {1, sniff},
		// files.go
		"information": {0, information}, "write": {2, write}, "mounts": {1, mounts}, "cgroup": {0, controlGroup},
		"descriptors": {1, descriptors}, "devices": {0, devices}, "sockets": {1, sockets},
		// process.go
		"posture": {0, posture}, "daemonise": {1, daemonise}, "hold": {0, hold}, "echo": {0, echo}, "flood": {1, flood}, "stubborn": {0, stubborn}, "zombies": {1, zombies},
	}
}

// batch LIST: a JSON list of attempts, one after the other.
func batch(args []string) error {
	var all [][]string
	if err := json.Unmarshal([]byte(args[0]), &all); err != nil {
		return err
	}
	for _, a := range all {
		fmt.Println("attempt", a)
		if err := run(a); err != nil {
			fmt.Println("refused:", err)
		}
	}
	return nil
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Println("refused:", err)
		os.Exit(3)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	a, ok := attempts()[args[0]]
	if !ok {
		return fmt.Errorf("no attempt %q", args[0])
	}
	if len(args)-1 < a.least {
		return errUsage
	}
	return a.do(args[1:])
}
