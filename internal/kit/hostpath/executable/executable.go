// Package executable opens programs of the host that the configuration has run: once, by
// descriptor, so that what is started is what was looked at. It says which files decide what a
// program does, and what is in them, and refuses those that a sandbox may write.
package executable

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// maxInterpreters is how many interpreters may stand behind one another; the kernel's own bound.
const maxInterpreters = 4

// Program is one that was opened. Close it.
type Program struct {
	argv   []string
	path   *hostpath.Path
	script bool
	// Digest is of all files that decide what it does, "sha256:" and hexadecimal.
	Digest string
}

// Sums remembers what is in files, by all that the kernel changes when they change. The zero value
// is ready. Safe for concurrent use.
type Sums struct {
	mu    sync.Mutex // guards known
	known map[fileState]string
}

// fileState is a file as it was when it was read.
type fileState struct {
	device, inode  uint64
	size           int64
	written, moved unix.Timespec
}

// Open opens the program that is named first, by its absolute path, and reads it, the interpreters
// of a script, and each file that one of its arguments names, by an absolute path or in dir. One
// that lies below a tree, or is reached by a link there, is refused: who may write there would
// decide what the host runs.
func (s *Sums) Open(argv []string, dir string, writable []hostpath.Tree) (*Program, error) {
	p := &Program{argv: argv}
	h := sha256.New()
	for i, name := range Files(argv, dir) {
		path, err := openUnwritable(name, writable)
		if err != nil {
			p.Close()
			return nil, err
		}
		sum, begin, err := s.digestFile(path)
		if i == 0 {
			p.path, p.script = path, bytes.HasPrefix(begin, []byte("#!"))
		} else {
			path.Close()
		}
		if err != nil {
			p.Close()
			return nil, err
		}
		_, _ = fmt.Fprintf(h, "%d:%s%s", len(name), name, sum) // a hash takes all
	}
	p.Digest = "sha256:" + hex.EncodeToString(h.Sum(nil))
	return p, nil
}

// Close gives the descriptor back.
func (p *Program) Close() {
	if p.path != nil {
		p.path.Close()
	}
}

// Command starts what was opened. A script is started by its name, since its interpreter has to
// find it: it was read immediately before.
func (p *Program) Command() *exec.Cmd {
	if p.script {
		return &exec.Cmd{Path: p.path.Name, Args: p.argv}
	}
	return &exec.Cmd{Path: p.path.Proc(), Args: p.argv}
}

// CommandContext is Command, which is killed when ctx ends.
func (p *Program) CommandContext(ctx context.Context) *exec.Cmd {
	started := p.Command()
	cmd := exec.CommandContext(ctx, started.Path)
	cmd.Args = started.Args
	return cmd
}

// CheckStrangers refuses a command that is to be run with this process's rights, if somebody other than root and this user could
// have written a file that decides what it does: of their agents nothing is known here.
func CheckStrangers(argv []string, dir string) error {
	for _, name := range Files(argv, dir) {
		other, err := hostpath.StrangerOf(name)
		if err != nil {
			return fmt.Errorf("the program %s can't be looked at: %w", name, err)
		}
		if other != nil {
			return fmt.Errorf("%s is not run, or read by a program, with this user's rights, because %s, whose agents are not known here; keep it where root and this user alone write", name, other)
		}
	}
	return nil
}

// openUnwritable opens a file, and refuses one that somebody inside may write.
func openUnwritable(name string, writable []hostpath.Tree) (*hostpath.Path, error) {
	path, err := hostpath.Resolve(name, writable)
	if err != nil {
		return nil, fmt.Errorf("the program %s can't be opened: %w", name, err)
	}
	if path.ID.Type != hostpath.File {
		path.Close()
		return nil, fmt.Errorf("%s is no file that can be run", name)
	}
	tree, below, err := hostpath.Within(path.Name, writable)
	if err == nil && below {
		err = fmt.Errorf("the program %s lies under %s, where a sandbox may write, or could, so it is not run; move it out, and mount its new place read-only at most", name, tree.Path)
	}
	if err != nil {
		path.Close()
		return nil, err
	}
	return path, nil
}

// Places are the directories in which a command may look for what it runs: the one that it is run
// in, those that its arguments name, and those of its variables that name where programs, modules and
// settings are. npx, make, git and python -m run what they find in the first, whatever they are told.
func Places(argv []string, dir string, environment map[string]string) []string {
	var all []string
	add := func(name string) {
		if !filepath.IsAbs(name) {
			if dir == "" || name == "" {
				return
			}
			name = filepath.Join(dir, name)
		}
		if path, err := hostpath.Follow(name); err == nil {
			if path.ID.Type == hostpath.Dir {
				all = append(all, name)
			}
			path.Close()
		}
	}
	add(dir)
	for _, arg := range argv[min(1, len(argv)):] {
		for _, name := range namesOf(arg) {
			add(name)
		}
	}
	for _, variable := range slices.Sorted(maps.Keys(environment)) {
		if slices.ContainsFunc([]string{"PATH", "LIB", "HOME", "PREFIX"}, func(end string) bool { return strings.HasSuffix(variable, end) }) {
			for _, name := range filepath.SplitList(environment[variable]) {
				add(name)
			}
		}
	}
	return all
}

// CheckPlaces refuses a command that may look for what it runs where a sandbox may write.
func CheckPlaces(places []string, writable []hostpath.Tree) error {
	if len(writable) == 0 {
		return nil
	}
	for _, name := range places {
		path, err := hostpath.Resolve(name, writable)
		if err != nil {
			return fmt.Errorf("the directory %s can't be opened: %w", name, err)
		}
		tree, below, err := hostpath.Within(path.Name, writable)
		path.Close()
		if err != nil {
			return err
		}
		if below {
			return fmt.Errorf("the directory %s, in which the program may look for what it runs, lies under %s, where a sandbox may write, or could, so it is not run; name another, and mount that read-only at most", name, tree.Path)
		}
	}
	return nil
}

// namesOf are the names that an argument may be: itself, and what it gives an option.
func namesOf(arg string) []string {
	if _, value, given := strings.Cut(arg, "="); given && value != "" {
		return []string{arg, value}
	}
	return []string{arg}
}

// Files are the files that decide what a command does: the program, the interpreters of a script,
// and the files that its arguments name. The program is among them whether it is there or not.
func Files(argv []string, dir string) []string {
	if len(argv) == 0 {
		return nil
	}
	files := []string{argv[0]}
	for at, n := argv[0], 0; n < maxInterpreters; n++ {
		if at = interpreter(at); at == "" {
			break
		}
		files = append(files, at)
	}
	for _, arg := range argv[1:] {
		for _, name := range namesOf(arg) {
			if !filepath.IsAbs(name) && dir != "" {
				name = filepath.Join(dir, name)
			}
			if path, err := hostpath.Follow(name); err == nil {
				if path.ID.Type == hostpath.File {
					files = append(files, name)
				}
				path.Close()
			}
		}
	}
	return files
}

// interpreter is what runs a script; "": it is none.
func interpreter(name string) string {
	path, err := hostpath.Follow(name)
	if err != nil {
		return ""
	}
	defer path.Close()
	file, err := path.Reader()
	if err != nil {
		return ""
	}
	defer file.Close()
	begin := make([]byte, unix.PathMax)
	n, _ := io.ReadFull(file, begin)
	line, _, _ := bytes.Cut(begin[:n], []byte("\n"))
	words, is := strings.CutPrefix(string(line), "#!")
	if !is || len(strings.Fields(words)) == 0 || !filepath.IsAbs(strings.Fields(words)[0]) {
		return ""
	}
	return strings.Fields(words)[0]
}

// digestFile gives the digest of a file, and how it begins.
func (s *Sums) digestFile(path *hostpath.Path) (sum string, begin []byte, err error) {
	file, err := path.Reader()
	if err != nil {
		return "", nil, err
	}
	defer file.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return "", nil, fmt.Errorf("%s can't be looked at: %w", path.Name, err)
	}
	begin = make([]byte, len("#!"))
	n, err := file.ReadAt(begin, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", nil, err
	}
	begin = begin[:n]
	is := fileState{device: st.Dev, inode: st.Ino, size: st.Size, written: st.Mtim, moved: st.Ctim}
	if sum, known := s.getSum(is); known {
		return sum, begin, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", nil, err
	}
	sum = hex.EncodeToString(h.Sum(nil))
	s.putSum(is, sum)
	return sum, begin, nil
}

// maxSums bounds what is remembered.
const maxSums = 64

func (s *Sums) getSum(is fileState) (sum string, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum, known = s.known[is]
	return sum, known
}

func (s *Sums) putSum(is fileState, sum string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= maxSums {
		s.known = map[fileState]string{}
	}
	s.known[is] = sum
}
