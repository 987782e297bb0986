package backend

import (
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// Viewer tells which sandboxes are there for somebody. Every wire finds sandboxes with Find and
// Listed, so that each route, listing and command hides the same ones.
type Viewer func(info sandbox.Info) bool

// HostViewer sees all: it is a user of the host, on the Unix socket.
func HostViewer(sandbox.Info) bool { return true }

// AnyOwnersViewer sees everybody's: it is an admin token, or a request that shows what only a
// sandbox's own clients have. Like any token it does not see what stands in for another sandbox
// (see journal.Info.StandsIn): others get what is built there.
func AnyOwnersViewer(info sandbox.Info) bool { return info.StandsIn() == "" }

// TokenViewer sees what is a token's own.
func TokenViewer(id string) Viewer {
	return func(info sandbox.Info) bool { return id != "" && info.ShownTo() == id }
}

// Find returns the sandbox with the id. One that the viewer does not see is a
// fault.ErrNotFound, as one that there is not.
func Find(sandboxes Sandboxes, id string, by Viewer) (*sandbox.Sandbox, error) {
	sb, err := sandboxes.Get(id)
	if err != nil {
		return nil, err
	}
	if !by(sb.Info()) {
		return nil, fault.New(fault.ErrNotFound, "there is no sandbox %q", id)
	}
	return sb, nil
}

// Listed returns the sandboxes that the viewer sees, in no order.
func Listed(sandboxes Sandboxes, by Viewer) []*sandbox.Sandbox {
	var seen []*sandbox.Sandbox
	for _, sb := range sandboxes.List() {
		if by(sb.Info()) {
			seen = append(seen, sb)
		}
	}
	return seen
}
