package mountpolicy

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// NobodysFiles says of mounts that can be written which of them belong to others than the user of the host as whom
// the sandbox acts. For root an engine shows those as the sandbox's own.
func NobodysFiles(all []engine.Mount, hostUID int) []string {
	var notes []string
	for _, m := range all {
		if m.Source == "" || m.ReadOnly || hostUID == 0 {
			continue
		}
		source, err := m.Open()
		if err != nil {
			continue // whoever mounts it says why not
		}
		var root unix.Stat_t
		err = unix.Fstat(source.Fd(), &root)
		source.Close()
		if err == nil && int(root.Uid) != hostUID {
			notes = append(notes, fmt.Sprintf("%s belongs to the user %d, and the sandbox acts as the user %d: inside its files are nobody's, which git refuses, and few can be written; run cofferdam as that user or as root, or with --workspace copy", m.Destination, root.Uid, hostUID))
		}
	}
	return notes
}
