package workspace

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// originalDir is a directory of the original in which something is brought over.
type originalDir struct {
	dir   *os.Root
	owner fs.FileInfo // of the directory that was opened
}

// openPlace opens a directory of the original through no link. Nothing in it is named from above again.
func openPlace(original *hostpath.Path, name string) (originalDir, error) {
	path, err := original.Below(name, hostpath.Identity{Type: hostpath.Dir})
	if err != nil {
		return originalDir{}, fmt.Errorf("%s is no directory of the original: %w", text.Name(name), err)
	}
	defer path.Close()
	dir, err := path.Root()
	if err != nil {
		return originalDir{}, err
	}
	owner, err := dir.Stat(".")
	if err != nil {
		_ = dir.Close()
		return originalDir{}, err
	}
	return originalDir{dir: dir, owner: owner}, nil
}

// asOwner makes something as the directory's owner, if this process is root. A directory or a link can't be
// given to somebody later by the name that it has: whoever owns the directory could have put something else there.
func (in originalDir) asOwner(do func() error) error {
	st, ok := in.owner.Sys().(*syscall.Stat_t)
	if !ok {
		return do()
	}
	return hostpath.AsUser(int(st.Uid), int(st.Gid), do)
}

// giveTo makes a file, which nobody else has made, that of another's owner, if this process is root.
func giveTo(file *os.File, like fs.FileInfo) error {
	st, ok := like.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return file.Chown(int(st.Uid), int(st.Gid))
}
