package microvm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel/resumable"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/microvm"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/microvm/firecracker/firecrackertest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/guest"
)

// ownProgram is this very binary.
func ownProgram() string {
	self, err := os.Executable()
	if err != nil {
		panic(err) // a test's binary has a path
	}
	return self
}

// roleStage makes the test binary the stage of a machine.
const roleStage = "microvm-stage"

// roleCopy makes it the agent of a copied machine, whose channel is where its source's was.
const roleCopy = "microvm-copy"

// copied is such an agent. It has nothing of its source but the place in the channel.
func copied(root, line string) error {
	listener, err := net.FileListener(os.Stdin)
	if err != nil {
		return err
	}
	var host resumable.State
	data, err := os.ReadFile(line)
	if err == nil {
		err = json.Unmarshal(data, &host)
	}
	if err != nil {
		return err
	}
	end := resumable.New()
	if err := end.Restore(resumable.State{Received: host.Base + uint64(len(host.Pending)), Base: host.Received}); err != nil {
		return err
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = end.Attach(conn)
		}
	}()
	session, err := channel.NewGuestSession(end)
	if err != nil {
		return err
	}
	return guest.New(guest.Config{Session: session, Log: slog.New(slog.DiscardHandler), Root: root, DNS: "127.0.0.1:0", Socket: "/agent.sock"}).Run(context.Background())
}

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == roleStage {
		if err := microvm.Stage(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, roleStage+":", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 2 && os.Args[1] == roleLook {
		if err := look(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 3 && os.Args[1] == roleCopy {
		fmt.Fprintln(os.Stderr, copied(os.Args[2], os.Args[3]))
		os.Exit(1)
	}
	if firecrackertest.Is(os.Args) {
		os.Exit(firecrackertest.Program(os.Args))
	}
	enginetest.Main(m)
}
