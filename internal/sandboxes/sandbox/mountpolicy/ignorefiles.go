package mountpolicy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// IgnoreFile is the file that hides paths of its directory from sandboxes, wherever they are shown; its
// syntax is that of .gitignore (patterns), and its patterns begin at its own directory. The agent can't
// change it (guardFiles). In a read-write mount it can rename a directory above
// something hidden, so that a pattern with a directory in it ("conf/key.pem") no
// longer names it: what was hidden once is known by what it is, and stays hidden
// as long as the ignore file is not changed (Hidden).
const IgnoreFile = ".aiignore"

// ignoreFile is one that holds for a part of what is shown, or for all of it.
type ignoreFile struct {
	dir      string            // in which it lies, without links
	id       hostpath.Identity // the directory's
	patterns patterns
	text     []byte
	digest   string
	known    map[uint64][]hostpath.Identity // what it has hidden before, by inode

	at     string // the part, relative; "": all
	before string // the way from its directory to the part; "": that is its directory
	hidden bool   // it hides the part itself, or a directory on that way

	ids []hostpath.Identity // of what it hides now
}

// pathOf is where it lies.
func (f *ignoreFile) pathOf() string { return filepath.Join(f.dir, IgnoreFile) }

// nameOf is the name of a path of what is shown as the patterns have it; ok is false where the file
// says nothing of it.
func (f *ignoreFile) nameOf(rel string) (name string, ok bool) {
	if f.at != "" {
		if rel, ok = strings.CutPrefix(rel, f.at); !ok || rel == "" || rel[0] != '/' {
			return "", false
		}
	}
	return filepath.Join(f.before, strings.TrimPrefix(rel, "/")), true
}

// ignoreFiles finds those that hold for what is shown: in it, in any directory above it, also above its
// other names and those of what is mounted in it, and in directories below it of which it is known that theirs hold (Rules.ignoring).
// No other directory is looked through for them.
func (r Rules) ignoreFiles(ctx context.Context, shown *hostpath.Path, may *Comparing) ([]*ignoreFile, error) {
	table, err := hostpath.ReadTable()
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the host's table of mounts can't be read")
	}
	s := ignoreSearch{rules: r, table: table, may: may}
	if err := s.searchAbove(ctx, shown, "", table.NamesUnder(shown.Name, "/")); err != nil {
		return nil, err
	}
	if shown.ID.Type != hostpath.Dir {
		return s.found, nil
	}
	around := strings.TrimSuffix(shown.Name, "/") + "/"
	for _, m := range table {
		if rel, is := strings.CutPrefix(m.At, around); is {
			if err := s.searchBelow(ctx, shown, rel, table.NamesUnder(m.At, "/")); err != nil {
				return nil, err
			}
		}
	}
	known, err := r.ignoring()
	if err != nil {
		return nil, err
	}
	for _, dir := range known {
		for _, name := range table.NamesUnder(dir, shown.Name) {
			if rel, is := strings.CutPrefix(name, around); is {
				if err := s.searchBelow(ctx, shown, rel, nil); err != nil {
					return nil, err
				}
			}
		}
	}
	return s.found, nil
}

// ignoring are directories of which it is known that their ignore files hold wherever they are shown.
func (r Rules) ignoring() ([]string, error) {
	known := r.Hidden.hiddenDirs()
	if r.Projects == nil {
		return known, nil
	}
	projects, err := r.Projects()
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the projects that were allowed, whose ignore files hold, can't be read")
	}
	return append(known, projects...), nil
}

// ignoreSearch looks for ignore files.
type ignoreSearch struct {
	rules Rules
	table hostpath.Table
	found []*ignoreFile
	may   *Comparing

	patterns, bytes int // of those that were found
}

// searchAbove finds those in and above a part of what is shown, by all its names.
func (s *ignoreSearch) searchAbove(ctx context.Context, part *hostpath.Path, at string, names []string) error {
	for _, name := range names {
		if name != part.Name {
			if is, err := isNamed(name, part.ID); err != nil {
				return err
			} else if !is {
				continue // something else lies over it
			}
		}
		for dir := name; ; dir = filepath.Dir(dir) {
			if dir == s.rules.Copies {
				break // what is in a copy was judged when it was made
			}
			if dir != name || part.ID.Type == hostpath.Dir {
				if err := s.lookInto(ctx, dir, part, at, strings.TrimPrefix(strings.TrimPrefix(name, dir), "/")); err != nil {
					return err
				}
			}
			if dir == "/" {
				break
			}
		}
	}
	return nil
}

// isNamed tells whether something has a name.
func isNamed(name string, id hostpath.Identity) (bool, error) {
	p, err := hostpath.Open(name, id)
	if _, other := errors.AsType[*hostpath.ChangedError](err); other {
		return false, nil
	}
	if err != nil {
		return false, unlessNotShown(name, err)
	}
	p.Close()
	return true, nil
}

// isNotShown tells of an error by which nobody can be shown what has a name either: it is not there, not this user's to see, or
// neither a file nor a directory. Others, such as too many open files, say nothing of what is there.
func isNotShown(err error) bool {
	if _, is := errors.AsType[*hostpath.LinkError](err); is {
		return true
	}
	if _, is := errors.AsType[*hostpath.TypeError](err); is {
		return true
	}
	return slices.ContainsFunc([]error{fs.ErrNotExist, fs.ErrPermission, unix.ENOTDIR, unix.ENOTCONN, unix.ESTALE}, func(one error) bool { return errors.Is(err, one) })
}

func unlessNotShown(name string, err error) error {
	if isNotShown(err) {
		return nil
	}
	return fault.Wrap(fault.ErrUnavailable, err, "%s, of which an ignore file may hide something, can't be looked at", name)
}

// searchBelow finds those of a directory in what is shown: its own, and those above its other names.
func (s *ignoreSearch) searchBelow(ctx context.Context, shown *hostpath.Path, rel string, names []string) error {
	part, err := shown.Below(rel, hostpath.Identity{})
	if err != nil {
		return unlessNotShown(filepath.Join(shown.Name, rel), err)
	}
	defer part.Close()
	if part.ID.Type == hostpath.Dir {
		if err := s.lookInto(ctx, part.Name, part, rel, ""); err != nil {
			return err
		}
	}
	return s.searchAbove(ctx, part, rel, slices.DeleteFunc(names, func(name string) bool { return name == part.Name }))
}

// lookInto looks into one directory, from which a way leads to a part of what is shown.
func (s *ignoreSearch) lookInto(ctx context.Context, name string, part *hostpath.Path, at, before string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	dir := part
	if before != "" {
		var err error
		if dir, err = hostpath.Open(name, hostpath.Identity{Type: hostpath.Dir}); err != nil {
			return movedMeanwhile(part.Name, err)
		}
		defer dir.Close()
		back, err := dir.Below(before, part.ID)
		if err != nil {
			return movedMeanwhile(part.Name, err)
		}
		back.Close()
	}
	f, err := readIgnoreFile(dir, before != "")
	if err != nil {
		return err
	}
	if err := s.checkSeen(dir, f); err != nil || f == nil {
		return err
	}
	if slices.ContainsFunc(s.found, func(has *ignoreFile) bool { return has.id == f.id && has.at == at && has.before == before }) {
		return nil // by another name
	}
	s.patterns, s.bytes = s.patterns+len(f.patterns.all), s.bytes+f.patterns.bytes
	if s.patterns > ignoreMaxAll || s.bytes > ignoreMaxAllBytes {
		return fault.Invalid("%s and other ignore files that hold for what is shown have more than %d patterns, or %d bytes of them, together; show a smaller directory, or ignore directories rather than files", f.pathOf(), ignoreMaxAll, ignoreMaxAllBytes)
	}
	f.at, f.before, f.known = at, before, s.rules.Hidden.knownByInode(f.id, f.digest)
	if f.hidden, err = f.hidesOnWay(ctx, dir, part.Name, s.may); err != nil {
		return err
	}
	s.found = append(s.found, f)
	return nil
}

// checkSeen asks about a directory's ignore file (nil: it has none) if it says something else than the one that has hidden files there before.
func (s *ignoreSearch) checkSeen(dir *hostpath.Path, f *ignoreFile) error {
	gone := f == nil
	if gone {
		f = &ignoreFile{dir: dir.Name, id: dir.ID}
	}
	if s.rules.Seen == nil || !s.rules.Hidden.changed(f.id, f.digest) {
		return nil
	}
	err := s.rules.Seen("ignore file", f.pathOf(), f.text)
	if gone && errors.Is(err, fault.ErrInvalid) { // there is nothing to read
		return fault.Invalid("the ignore file %s, which has hidden files, is gone, and an agent could have removed it: put it back; or, if nothing is to be hidden any more, make an empty one and say so: cofferdam project allow %s", f.pathOf(), f.pathOf())
	}
	return err
}

func movedMeanwhile(name string, err error) error {
	return fault.Wrap(fault.ErrConflict, err, "%s was moved while it was looked at; try again", name)
}

// hidesOnWay tells whether the file hides the part for which it holds, or a directory above that. Whoever may write there has made
// the way as long as a path can be, so that each directory on it is opened from the one before, and what is compared is counted.
func (f *ignoreFile) hidesOnWay(ctx context.Context, dir *hostpath.Path, shown string, may *Comparing) (bool, error) {
	if f.before == "" {
		return false, nil
	}
	way, at := "", dir
	defer func() {
		if at != dir {
			at.Close()
		}
	}()
	for name := range strings.SplitSeq(f.before, "/") {
		if err := may.takeCost(ctx, openCost, shown, f.pathOf()); err != nil {
			return false, err
		}
		this, err := at.Below(name, hostpath.Identity{})
		if err != nil {
			return true, nil // it has just gone, and nobody knows what it was
		}
		if at != dir {
			at.Close()
		}
		way, at = filepath.Join(way, name), this
		hides, err := may.matchesIgnore(ctx, f.pathOf(), f.patterns, shown, way, this.ID.Type == hostpath.Dir)
		if err != nil {
			return false, err
		}
		if hides || f.hasHidden(this.ID) {
			return true, nil
		}
	}
	return false, nil
}

// hasHidden tells whether something was hidden before, under whatever name.
func (f *ignoreFile) hasHidden(id hostpath.Identity) bool {
	return slices.ContainsFunc(f.known[id.Inode], func(was hostpath.Identity) bool { return was.IsAfterBoot(id) })
}

// readIgnoreFile reads a directory's ignore file; nil if it has none. Above what is shown, in a directory where all may make
// files but only rename their own, such as /tmp, that of a stranger is none: it would say what others see.
func readIgnoreFile(dir *hostpath.Path, above bool) (*ignoreFile, error) {
	if above && isStrangers(dir) {
		return nil, nil
	}
	file := filepath.Join(dir.Name, IgnoreFile)
	path, err := dir.Below(IgnoreFile, hostpath.Identity{Type: hostpath.File})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it has none
	}
	if _, link := errors.AsType[*hostpath.LinkError](err); link {
		return nil, fault.Invalid("the ignore file %s is a link, and whoever may replace it decides what is hidden; put the file itself there", file)
	}
	if err != nil {
		return nil, fault.Invalid("the ignore file %s can't be read: %v", file, err)
	}
	defer path.Close()
	text, err := path.ReadFile(ignoreMaxBytes)
	if err != nil {
		return nil, fault.Invalid("the ignore file %s can't be read, which may have %d bytes: %v", file, ignoreMaxBytes, err)
	}
	parsed, err := parsePatterns(file, text)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	return &ignoreFile{dir: dir.Name, id: dir.ID, text: text, digest: hex.EncodeToString(sum[:]), patterns: parsed}, nil
}

// isStrangers tells whether a directory is everybody's, and its ignore file neither its owner's, root's nor this user's.
func isStrangers(dir *hostpath.Path) bool {
	var all, file unix.Stat_t
	const everybodys = unix.S_ISVTX | unix.S_IWOTH
	if unix.Fstat(dir.Fd(), &all) != nil || all.Mode&everybodys != everybodys {
		return false
	}
	if unix.Fstatat(dir.Fd(), IgnoreFile, &file, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	return file.Uid != 0 && file.Uid != all.Uid && int(file.Uid) != os.Geteuid()
}
