// Command cofferdam-guest is PID 1 in every sandbox, and under the name
// `cofferdam` the little that processes in a sandbox may ask for; under that of
// `sudo` it runs a command as who asked, and as `cofferdam-tool` it calls functions of the
// host. The host starts it under one more name, to run what installs packages in a build, and
// with an argument, to prove the sandbox's controls. In a sandbox with a kernel of its own it
// is that kernel's first program, too.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/loglimit"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/attest/probe"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/guest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/guest/boot"
)

func main() {
	if os.Getpid() == 1 && os.Args[0] == boot.Program {
		fmt.Fprintln(os.Stderr, "cofferdam-guest:", boot.Run())
		os.Exit(1)
	}
	if filepath.Base(os.Args[0]) == guest.SudoName && os.Getpid() != 1 {
		os.Exit(guest.Sudo(os.Args[1:], os.Stdout, os.Stderr))
	}
	if filepath.Base(os.Args[0]) == guest.ElevatedName && os.Getpid() != 1 {
		os.Exit(guest.Elevated(os.Args[1:], os.Stderr))
	}
	if filepath.Base(os.Args[0]) == guest.ToolName && os.Getpid() != 1 {
		os.Exit(guest.Tool(context.Background(), os.Args[1:], guest.ToolConfig{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}))
	}
	if len(os.Args) > 1 && os.Args[1] == probe.Argument && os.Getpid() != 1 {
		os.Exit(probe.Run(os.Args[2:], os.Stdout, os.Stderr))
	}
	if os.Getpid() != 1 || filepath.Base(os.Args[0]) == "cofferdam" {
		os.Exit(guest.Ask(context.Background(), os.Args[1:], guest.SocketPath, os.Stdout, os.Stderr))
	}
	if err := runAgent(); err != nil {
		fmt.Fprintln(os.Stderr, "cofferdam-guest:", err)
		os.Exit(1)
	}
}

// runAgent does the work of PID 1.
func runAgent() error {
	conn, err := guest.TakeChannel()
	if err != nil {
		return err
	}
	if err := guest.Harden(); err != nil {
		return err
	}
	session, err := channel.NewGuestSession(conn)
	if err != nil {
		return err
	}
	log := slog.New(loglimit.Limit(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	return guest.New(guest.Config{Session: session, Log: log}).Run(context.Background())
}
