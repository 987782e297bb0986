package guest

import (
	"errors"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// Limits of paths; the kernel's own.
const (
	maxPath  = 4095
	maxLinks = 40
)

// filePlace is where a file lies, or would lie: a directory that is held open and a
// name in it. Whatever others rename meanwhile, it stays the same directory.
type filePlace struct {
	dir  int    // O_PATH
	name string // "." for the root directory
	path string // as it was asked for: absolute and clean
	real string // without symbolic links before the name
	made []int  // O_PATH: the directories that were made on the way, if they are to be given
}

func (p *filePlace) closePlace() {
	for _, dir := range append(p.made, p.dir) {
		_ = unix.Close(dir)
	}
}

// statPlace returns the stat of what lies there, a symbolic link not followed.
func (p *filePlace) statPlace() (unix.Stat_t, error) {
	var stat unix.Stat_t
	err := unix.Fstatat(p.dir, p.name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	return stat, err
}

// cleanPath makes the path of a call absolute. ".." takes a name away, whatever
// that is: links are not looked at.
func cleanPath(user channel.User, asked string) (string, error) {
	switch {
	case asked == "":
		return "", invalidFile("a path must not be empty")
	case strings.ContainsRune(asked, 0):
		return "", invalidFile("the path %.200q has a zero byte", asked)
	case len(asked) > maxPath:
		return "", invalidFile("the path %.40q... is %d bytes long; at most %d", asked, len(asked), maxPath)
	}
	switch {
	case asked == "~":
		asked = user.Home
	case strings.HasPrefix(asked, "~/"):
		asked = user.Home + asked[1:]
	case asked[0] != '/':
		asked = user.Home + "/" + asked
	}
	clean := path.Clean(asked)
	if len(clean) > maxPath {
		return "", invalidFile("the path %.40q... is %d bytes long; at most %d", clean, len(clean), maxPath)
	}
	return clean, nil
}

// search is how a place is looked for.
type search struct {
	follow  bool // a symbolic link at the end leads on
	parents bool // directories before the end are made where there are none
	give    bool // what is made will be given to the user: links of others than root are no way there
	kernel  bool // the process table's files about the system are no process's: they are found, too
}

// locate finds the place of a clean path below root, which is the agent's
// Config.Root. It goes from directory to directory itself, for two reasons: what
// it has found stays what it is, and no way leads through the process table,
// where links of the agent's own descriptors, root and memory lie, which the
// kernel would let it open.
//
// The caller closes the place. To be called with the user's rights.
func locate(root, clean string, how search) (*filePlace, error) {
	w, err := newPathSearch(root, clean, how.kernel)
	if err != nil {
		return nil, err
	}
	w.give = how.give
	found := false
	for !found && err == nil {
		found, err = w.stepOn(how)
	}
	p := &filePlace{dir: w.at, name: w.name, path: clean, real: path.Join(w.real, w.name), made: w.made}
	if err != nil {
		p.closePlace()
		return nil, err
	}
	return p, nil
}

// pathSearch is a search under way.
type pathSearch struct {
	root  string
	at    int      // the directory that it has come to
	real  string   // its path
	rest  []string // the names that are left
	links int
	proc  uint64 // procDevice
	name  string // what was found in at

	kernel bool // as in search
	inside bool // at is in the process table

	give     bool  // as in search
	justMade bool  // the directory that is entered next was just made
	made     []int // those that were, held open if they are to be given
}

func newPathSearch(root, clean string, kernel bool) (*pathSearch, error) {
	w := &pathSearch{root: root + "/", real: "/", rest: namesOf(clean), proc: procDevice(), kernel: kernel}
	var err error
	w.at, err = openDir(unix.AT_FDCWD, w.root)
	return w, err
}

// procDevice is the device number of the process table; 0: there is none.
func procDevice() uint64 {
	var root, proc unix.Stat_t
	if unix.Stat("/", &root) != nil || unix.Stat("/proc", &proc) != nil || root.Dev == proc.Dev {
		return 0
	}
	return proc.Dev
}

// namesOf are a path's, without those that mean nothing.
func namesOf(p string) []string {
	var kept []string
	for name := range strings.SplitSeq(p, "/") {
		if name != "" && name != "." {
			kept = append(kept, name)
		}
	}
	return kept
}

func openDir(at int, name string) (int, error) {
	return unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// stepOn goes one name on, and tells whether that was the last.
func (w *pathSearch) stepOn(how search) (bool, error) {
	if len(w.rest) == 0 {
		w.name = "."
		return true, nil
	}
	name, last := w.rest[0], len(w.rest) == 1
	if w.inside && (name == ".." || isProcess(name)) {
		return false, errProc()
	}
	if name == ".." { // only of a link
		w.rest = w.rest[1:]
		return false, w.goUp()
	}
	if last && !how.follow {
		w.name = name
		return true, nil
	}
	var stat unix.Stat_t
	err := unix.Fstatat(w.at, name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) && !last && how.parents {
		if err = unix.Mkdirat(w.at, name, 0o755); err == nil || errors.Is(err, unix.EEXIST) {
			w.justMade = err == nil
			return false, nil // it is there now
		}
	}
	switch {
	case errors.Is(err, unix.ENOENT) && last:
		w.name = name
		return true, nil
	case err != nil:
		return false, err
	case w.inside && stat.Mode&unix.S_IFMT != unix.S_IFREG && stat.Mode&unix.S_IFMT != unix.S_IFDIR:
		return false, errProc()
	case stat.Mode&unix.S_IFMT == unix.S_IFLNK && w.give && stat.Uid != 0:
		return false, unix.EACCES
	case stat.Mode&unix.S_IFMT == unix.S_IFLNK:
		return false, w.through(name)
	case last:
		w.name = name
		return true, nil
	}
	w.rest = w.rest[1:]
	return false, w.enterDir(name)
}

// enterDir enters a directory.
func (w *pathSearch) enterDir(name string) error {
	next, err := openDir(w.at, name)
	if err != nil {
		return err
	}
	if w.justMade && w.give {
		kept, err := unix.FcntlInt(uintptr(next), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			_ = unix.Close(next)
			return err
		}
		w.made = append(w.made, kept)
	}
	w.justMade = false
	w.real = path.Join(w.real, name)
	return w.turnTo(next)
}

// goUp goes to the directory above, of the root to itself.
func (w *pathSearch) goUp() error {
	if w.real == "/" {
		return nil
	}
	next, err := openDir(w.at, "..")
	if err != nil {
		return err
	}
	w.real = path.Dir(w.real)
	return w.turnTo(next)
}

// turnTo makes next the directory that the walk has come to.
func (w *pathSearch) turnTo(next int) error {
	_ = unix.Close(w.at)
	w.at = next
	inside := inProc(next, w.proc)
	// In the process table there is no way but down from its root, and none from a link.
	if inside && (!w.kernel || w.links > 0 || !w.inside && w.real != "/proc") {
		return errProc()
	}
	w.inside = inside
	return nil
}

// isProcess tells whether a name of the process table is that of a process, or a
// link to the agent's own.
func isProcess(name string) bool {
	return name == "self" || name == "thread-self" || strings.Trim(name, "0123456789") == ""
}

// errProc is why a path through the process table is refused.
func errProc() error {
	return invalidFile("of the process table (/proc) this call reads what is said of the system; the rest is for a command to read")
}

// inProc tells whether a directory belongs to the process table.
func inProc(dir int, proc uint64) bool {
	var stat unix.Stat_t
	return proc != 0 && unix.Fstat(dir, &stat) == nil && stat.Dev == proc
}

// through goes on where a symbolic link leads.
func (w *pathSearch) through(name string) error {
	if w.links++; w.links > maxLinks {
		return unix.ELOOP
	}
	target, err := readLink(w.at, name)
	if err != nil {
		return err
	}
	rest := w.rest[1:]
	if strings.HasPrefix(target, "/") {
		next, err := openDir(unix.AT_FDCWD, w.root)
		if err != nil {
			return err
		}
		w.real = "/"
		if err := w.turnTo(next); err != nil {
			return err
		}
	}
	w.rest = append(namesOf(target), rest...)
	return nil
}

// readLink reads a symbolic link's target.
func readLink(dir int, name string) (string, error) {
	buf := make([]byte, maxPath+1)
	n, err := unix.Readlinkat(dir, name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}
