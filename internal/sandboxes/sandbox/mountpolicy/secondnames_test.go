package mountpolicy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process/processtest"
)

// secondName is a file that decides, and another name of it.
type secondName struct {
	file, second string // second "": it has none
	bound        bool   // second is the file, mounted there
	mount        Mount
	refused      bool
}

// secondNames are in a directory with policy.yaml and .aiignore, directories in, outside and in/deep, and a file notes.
func secondNames() map[string]secondName {
	written, below := Mount{Source: ".", ReadWrite: true}, Mount{Source: "in", ReadWrite: true}
	return map[string]secondName{
		"control: none":               {"policy.yaml", "", false, written, false},
		"beside it":                   {"policy.yaml", "second", false, written, true},
		"deep":                        {"policy.yaml", "in/deep/second", false, written, true},
		"of a file outside":           {"policy.yaml", "in/second", false, below, true},
		"the mount":                   {"policy.yaml", "in/second", false, Mount{Source: "in/second", ReadWrite: true}, true},
		"control: another is mounted": {"policy.yaml", "in/second", false, Mount{Source: "notes", ReadWrite: true}, false},
		"control: elsewhere":          {"policy.yaml", "outside/second", false, below, false},
		"control: read-only":          {"policy.yaml", "second", false, Mount{Source: "."}, false},
		"of the ignore file":          {IgnoreFile, "second", false, written, true},
		"of the ignore file above":    {IgnoreFile, "in/second", false, below, true},
		"bound":                       {"policy.yaml", "notes", true, written, true},
		"control: bound, and covered": {"policy.yaml", "in/bound", true, below, false},
	}
}

// TestSecondNamesOfDecidingFiles: a run that was not decided by a file could give it a second name; in a
// run that is, that name is as good for writing it anew. It is refused before it starts, and does not go on if
// the name was made while it was paused.
func TestSecondNamesOfDecidingFiles(t *testing.T) {
	t.Parallel()
	for name, c := range secondNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := laidOut(t, map[string]string{"policy.yaml": "name: x\n", IgnoreFile: "*.key\n", "notes": "", "outside": "-", "in/deep": "-", "in/bound": ""})
			var deciding []string
			if c.file != IgnoreFile {
				deciding = []string{at(c.file)}
			}
			makeSecond := func() {
				t.Helper()
				switch {
				case c.second == "":
				case c.bound:
					if err := unix.Mount(at(c.file), at(c.second), "", unix.MS_BIND, ""); err != nil {
						processtest.NeedRoot(t, err)
					}
					t.Cleanup(func() {
						if err := unix.Unmount(at(c.second), unix.MNT_DETACH); err != nil {
							t.Error(err)
						}
					})
				default:
					if err := os.Link(at(c.file), at(c.second)); err != nil {
						t.Fatal(err)
					}
				}
			}
			asked := []Mount{{Source: at(c.mount.Source), Destination: "/w", ReadWrite: c.mount.ReadWrite}}
			if c.mount.Source != c.second {
				before, err := Rules{EmptyFile: "/empty"}.Lay(t.Context(), asked, deciding)
				if err == nil {
					err = CheckGuards(t.Context(), before, nil)
				}
				if err != nil {
					t.Fatalf("without the second name: %v", err)
				}
				makeSecond()
				covered := c.refused && filepath.Dir(at(c.file)) == asked[0].Source
				err = CheckGuards(t.Context(), before, nil)
				if told := fault.Sentence(err, ""); errors.Is(err, fault.ErrConflict) != covered || strings.Contains(told, at(c.second)) != covered {
					t.Errorf("one that was paused goes on with %v; a person reads %q", err, told)
				}
			} else {
				makeSecond()
			}
			_, err := Rules{EmptyFile: "/empty"}.Lay(t.Context(), asked, deciding)
			if c.refused && (!errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), at(c.file)) || !strings.Contains(err.Error(), at(c.second))) || !c.refused && err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestOwnProgramsMayHaveSecondNames: what lies over one of Cofferdam's own programs looks like a guard, and installers link them.
func TestOwnProgramsMayHaveSecondNames(t *testing.T) {
	t.Parallel()
	at := laidOut(t, map[string]string{"cofferdam": "", "in": "-"})
	if err := os.Link(at("cofferdam"), at("in/cofferdam")); err != nil {
		t.Fatal(err)
	}
	asked := []Mount{{Source: at("."), Destination: "/w", ReadWrite: true}}
	all, err := Rules{OwnPrograms: []string{at("cofferdam")}}.Lay(t.Context(), asked, nil)
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	if err := CheckGuards(t.Context(), all, []string{at("cofferdam")}); err != nil {
		t.Error(err)
	}
	if err := CheckGuards(t.Context(), all, nil); !errors.Is(err, fault.ErrConflict) { // the control
		t.Errorf("as a file that decides: %v", err)
	}
}

// entry is a file of a directory; looking at it fails, if err is set.
type entry struct {
	fs.DirEntry

	err error
}

func (e entry) Info() (fs.FileInfo, error) {
	if e.err != nil {
		return nil, e.err
	}
	return e.DirEntry.Info()
}

// TestSecondNameThatCantBeLookedAt: what can't be looked at, be it for too many open files, is not taken for gone, at no
// place where it is looked at. The controls are the same name that is found, and one that is gone.
func TestSecondNameThatCantBeLookedAt(t *testing.T) {
	t.Parallel()
	at := laidOut(t, map[string]string{"policy.yaml": "name: x\n"})
	if err := os.Link(at("policy.yaml"), at("second")); err != nil {
		t.Fatal(err)
	}
	file, err := hostpath.Open(at("policy.yaml"), hostpath.Identity{Type: hostpath.File})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	shown, err := hostpath.Resolve(at("."), nil)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(at("second"))
	if err != nil {
		t.Fatal(err)
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatal("no inode")
	}
	second := fs.FileInfoToDirEntry(info)
	search := func() *linkSearch {
		return &linkSearch{in: Checked{Mount{Source: at("."), ReadWrite: true}, shown}, file: file, inode: sys.Ino}
	}
	s := search()
	if err := s.visitEntry("second", entry{second, nil}, nil); !errors.Is(err, fs.SkipAll) || s.found != at("second") {
		t.Errorf("the control: %q, %v", s.found, err)
	}
	for cause, gone := range map[error]bool{
		&hostpath.LinkError{}: true, &hostpath.TypeError{}: true, &hostpath.ChangedError{}: true, unix.ENOENT: true, unix.ENOTDIR: true,
		unix.EMFILE: false, unix.ENFILE: false, unix.ENOMEM: false, unix.EIO: false, unix.EACCES: false, unix.ESTALE: false,
	} {
		cause = fmt.Errorf("open: %w", cause)
		if err := search().visitEntry("second", entry{second, nil}, cause); (err == nil) != gone {
			t.Errorf("a directory that can't be read for %v: %v", cause, err)
		}
		if err := search().visitEntry("second", entry{second, cause}, nil); (err == nil) != gone {
			t.Errorf("a file that can't be looked at for %v: %v", cause, err)
		}
	}
	shown.Close() // no name below it can be opened any more
	if err := search().visitEntry("second", entry{second, nil}, nil); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a file that can't be opened: %v", err)
	}
}
