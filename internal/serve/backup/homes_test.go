package backup_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/serve/backup"
)

// TestNoAgentDecidesWhetherThereIsABackup: whatever is in a home, all else is in the archive, and the report says what of that
// home is not.
func TestNoAgentDecidesWhetherThereIsABackup(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("b", 2<<20)
	for name, c := range map[string]struct {
		do   func(home string) error
		meet func(home string) // when the entry of its file "big" is written
		want string            // of the report; "": the home is whole
	}{
		"directories without end": {do: func(home string) error { return os.MkdirAll(home+strings.Repeat("/d", 300), 0o700) }, want: "directories in each other"},
		"a file of no end": {do: func(home string) error {
			return errors.Join(os.WriteFile(home+"/a", nil, 0o600), os.Truncate(home+"/a", 1<<42))
		}, want: "holes of more than 1 GiB"},
		"files that become short": {
			do:   func(home string) error { return os.WriteFile(home+"/big", []byte(big), 0o600) },
			meet: func(home string) { _ = os.Truncate(home+"/big", 1) }, want: "zeros stand for the rest",
		},
		"one file of many names": {do: func(home string) error {
			err := os.WriteFile(home+"/big", []byte(big), 0o600)
			for _, n := range "abcdefgh" {
				err = errors.Join(err, os.Link(home+"/big", home+"/"+string(n)))
			}
			return err
		}},
		"a name as of ours":   {do: func(home string) error { return os.WriteFile(home+"/.a.new-b", []byte("yes"), 0o600) }},
		"a named pipe":        {do: func(home string) error { return unix.Mkfifo(home+"/pipe", 0o600) }},
		"a name of any bytes": {do: func(home string) error { return os.WriteFile(home+"/\xff\n\x1b[2J", []byte("yes"), 0o600) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInstallation(t)
			home := filepath.Join(i.paths.Homes(), "0", "default")
			must(t, c.do(home))
			must(t, os.MkdirAll(filepath.Join(i.paths.Homes(), "1", "other"), 0o700))
			must(t, os.WriteFile(filepath.Join(i.paths.Homes(), "1", "other", "file"), []byte("yes"), 0o600))
			var to bytes.Buffer
			report, err := backup.Write(t.Context(), met{&to, func(written []byte) {
				if c.meet != nil && bytes.Contains(written, []byte("homes/0/default/big")) {
					c.meet(home)
				}
			}}, backup.Options{Paths: i.paths})
			must(t, err)
			if said := strings.Join(report.NotWhole, "\n"); c.want == "" && said != "" || !strings.Contains(said, c.want) || c.want != "" && !strings.HasPrefix(said, "homes/0/default ") {
				t.Errorf("the report says %q, want %q", said, c.want)
			}
			if to.Len() > 12<<20 {
				t.Errorf("the archive has %d bytes", to.Len())
			}
			names := namesIn(t, &to)
			for _, want := range []string{"homes/0/default/.agent/login", "homes/1/other/file", "audit.key", "ca/ca.crt"} {
				if !names[want] {
					t.Errorf("%s is not in the archive", want)
				}
			}
			entries, err := os.ReadDir(home)
			must(t, err)
			for _, e := range entries {
				if at := "homes/0/default/" + e.Name(); c.want == "" && e.Type().IsRegular() && !names[at] {
					t.Errorf("%q is not in the archive", at)
				}
			}
		})
	}
}

// met tells what is written before it is.
type met struct {
	io.Writer

	tell func(written []byte)
}

func (m met) Write(p []byte) (int, error) {
	m.tell(p)
	return m.Writer.Write(p)
}

func namesIn(t *testing.T, archive io.Reader) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for in := tar.NewReader(archive); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		must(t, err)
		names[strings.TrimSuffix(h.Name, "/")] = true
	}
}
