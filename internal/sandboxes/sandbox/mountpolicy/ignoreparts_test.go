package mountpolicy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// TestPartsWithoutIgnoreFilesAreNotLookedThrough: of a large directory with some projects deep in it, these alone are looked
// through. The host tells which directories were read. The control is an ignore file at the top, which says something of all.
func TestPartsWithoutIgnoreFilesAreNotLookedThrough(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		top  string
		want []string // that were read
	}{
		"deep ones alone": {want: []string{"a/p/in", "b"}}, "control: one at the top": {top: "*.txt\n", want: []string{"a/p/in", "b", "large"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{
				"a/p/" + IgnoreFile: "key.pem\n", "a/p/in/key.pem": "s", "a/p/in/" + IgnoreFile: "x\n", "a/p/in/x": "s",
				"b/" + IgnoreFile: "key.pem\n", "b/key.pem": "s", "large/key.pem": "",
			}
			if c.top != "" {
				files[IgnoreFile] = c.top
			}
			at := laidOut(t, files)
			watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(watch)
			watched := []string{"a/p/in", "b", "large"}
			for i, dir := range watched {
				if wd, err := unix.InotifyAddWatch(watch, at(dir), unix.IN_OPEN|unix.IN_ONLYDIR); err != nil || wd != i+1 {
					t.Fatal(wd, err)
				}
			}
			rules := Rules{EmptyFile: "/empty", Projects: func() ([]string, error) { return []string{at("b"), at("a/p/in"), at("a/p")}, nil }}
			all, err := rules.Lay(t.Context(), []Mount{{Source: at("."), Destination: "/w"}}, nil)
			if got := covers(all); err != nil || !slices.Equal(got, []string{"/w/a/p/in/key.pem", "/w/a/p/in/x", "/w/b/key.pem"}) {
				t.Errorf("%q are hidden, %v", got, err)
			}
			if read := openedDirs(t, watch, watched); !slices.Equal(read, c.want) {
				t.Errorf("%q were read; want %q", read, c.want)
			}
		})
	}
}

// openedDirs are the watched directories that were opened themselves, by the order in which they are watched.
func openedDirs(t *testing.T, watch int, dirs []string) (all []string) {
	t.Helper()
	buf := make([]byte, 1<<16)
	n, err := unix.Read(watch, buf)
	if err != nil && !errors.Is(err, unix.EAGAIN) {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for buf = buf[:max(n, 0)]; len(buf) >= unix.SizeofInotifyEvent; {
		wd, length := int(buf[0]), int(buf[12])|int(buf[13])<<8
		seen[wd] = seen[wd] || length == 0 // else a file in it
		buf = buf[unix.SizeofInotifyEvent+length:]
	}
	for i, dir := range dirs {
		if seen[i+1] {
			all = append(all, dir)
		}
	}
	return all
}

// TestWhatCantBeLookedAtIsNotShown: where nobody knows whether an ignore file is below what is shown, that is a refusal. The
// control is a directory that is not there.
func TestWhatCantBeLookedAtIsNotShown(t *testing.T) {
	t.Parallel()
	at := laidOut(t, map[string]string{"p/" + IgnoreFile: "key.pem\n"})
	shown, err := hostpath.Resolve(at("."), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := ignoreSearch{}
	if err := s.searchBelow(t.Context(), shown, "q", nil); err != nil {
		t.Errorf("the control: %v", err)
	}
	shown.Close() // no name below it can be opened any more
	if err := s.searchBelow(t.Context(), shown, "p", nil); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	for cause, want := range map[error]bool{
		&hostpath.LinkError{}: true, &hostpath.TypeError{}: true, unix.ENOENT: true, unix.EACCES: true, unix.ENOTDIR: true,
		unix.EMFILE: false, unix.ENFILE: false, unix.ENOMEM: false, unix.EIO: false,
	} {
		if is := isNotShown(fmt.Errorf("open: %w", cause)); is != want {
			t.Errorf("%v: %v", cause, is)
		}
	}
}

// TestAnIgnoreFileThatIsGone: whoever has removed one is told what to do, which is not to read it. The control is one
// that is there.
func TestAnIgnoreFileThatIsGone(t *testing.T) {
	t.Parallel()
	at := laidOut(t, map[string]string{IgnoreFile: "key.pem\n", "key.pem": "s"})
	h, err := OpenHidden(filepath.Join(t.TempDir(), "hidden"))
	if err != nil {
		t.Fatal(err)
	}
	vouched := map[string]bool{}
	rules := Rules{EmptyFile: "/empty", Hidden: h, Seen: func(_, path string, text []byte) error {
		if vouched[string(text)] {
			return nil
		}
		return fault.Invalid("nobody has seen what is in %s: read it", path)
	}}
	lay := func() error {
		_, err := rules.Lay(t.Context(), []Mount{{Source: at("."), Destination: "/w"}}, nil)
		return err
	}
	if err := errors.Join(lay(), os.WriteFile(at(IgnoreFile), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := lay(); err == nil || !strings.Contains(err.Error(), "read it") {
		t.Errorf("the control: %v", err)
	}
	if err := os.Remove(at(IgnoreFile)); err != nil {
		t.Fatal(err)
	}
	if err := lay(); !errors.Is(err, fault.ErrInvalid) || strings.Contains(err.Error(), "read it") || !strings.Contains(err.Error(), "make an empty one") {
		t.Errorf("%v", err)
	}
	if vouched[""] = true; lay() != nil {
		t.Error("an empty one was seen")
	}
}

// TestManyPartsHideMoreThanIsMountedOver: what is known of parts may be more than an engine mounts over one mount: all of the
// directory is looked through then to know what is there, not to be mounted. The control is more than is kept.
func TestManyPartsHideMoreThanIsMountedOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		most    int
		refused bool
	}{"more than is mounted": {ignoreMaxHidden + 10, false}, "control: more than is kept": {ignoreMaxHidden + 5, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{IgnoreFile: "key.*\n"}
			for i := range ignoreMaxHidden / 2 {
				files[fmt.Sprintf("a/key.%d", i)], files[fmt.Sprintf("b/key.%d", i)] = "", ""
			}
			for i := range 10 {
				files[fmt.Sprintf("c/key.%d", i)] = ""
			}
			at := laidOut(t, files)
			h := &Hidden{path: filepath.Join(t.TempDir(), "hidden"), most: 10, mostIDs: c.most}
			lay := func(part string) error {
				_, err := Rules{EmptyFile: "/empty", Hidden: h}.Lay(t.Context(), []Mount{{Source: at(part), Destination: "/w"}}, nil)
				return err
			}
			err := errors.Join(lay("a"), lay("b"))
			if err != nil {
				t.Fatal(err)
			}
			if c.most > ignoreMaxHidden+5 { // files that were made anew are known twice
				for i := range 10 {
					name := at(fmt.Sprintf("c/key.%d", i))
					err = errors.Join(err, lay("c"), os.Rename(name, name+".old"), os.WriteFile(name, nil, 0o600), os.Remove(name+".old"))
				}
			}
			if err = errors.Join(err, lay("c")); (err != nil) != c.refused || c.refused && !strings.Contains(err.Error(), "change a line") {
				t.Error(err)
			}
		})
	}
}
