package suspend

import (
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// Hold is a request of the sandbox's client that waits for a person.
type Hold struct {
	Approval string     `json:"approval"`       // the request in the queue
	Tree     string     `json:"tree,omitempty"` // the request that this one is a member of
	Package  pkgref.Ref `json:"package,omitzero"`
	Host     string     `json:"host,omitempty"` // "api.example:443", in the place of a package
	Push     string     `json:"push,omitempty"` // "git.example:443/acme/app sha256:...", the same: of a push
	Tool     string     `json:"tool,omitempty"` // "lookup_order sha256:...", the same: of a call
	Reason   string     `json:"reason,omitempty"`
	Since    time.Time  `json:"since"`
	Freeze   bool       `json:"freeze,omitempty"` // the sandbox is to be frozen meanwhile
}

// Subject names the thing that the sandbox waits for, for people: "python rich 13.7.1", "host api.example:443",
// "push to git.example:443/acme/app sha256:...", "tool lookup_order sha256:...".
func (h Hold) Subject() string {
	switch {
	case h.Push != "":
		return "push to " + h.Push
	case h.Host != "":
		return "host " + h.Host
	case h.Tool != "":
		return "tool " + h.Tool
	}
	return string(h.Package.Ecosystem) + " " + h.Package.Name + " " + h.Package.Version
}

// Saved is what must outlive the daemon: it is written before a freeze begins
// and taken back when the sandbox runs again.
type Saved struct {
	Holds  []Hold    `json:"holds"`
	Since  time.Time `json:"since"`            // when the freeze began
	Paused bool      `json:"paused,omitempty"` // a resume is waited for, too
	Files  bool      `json:"files,omitempty"`  // of what is paused only the files are kept
	Silent bool      `json:"silent,omitempty"` // the guest did not answer before it was written
}
