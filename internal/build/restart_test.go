package build_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/build"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox"
)

// TestAResultThatIsThereIsOnRecord: a build whose daemon was killed between its result and the record of that
// is told as a good one after the start, and its template is used. So the log has that it is ready; what is put
// there for begins without an end ("failed: the daemon ended", package unended) says the contrary.
func TestAResultThatIsThereIsOnRecord(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	ready := func(id string) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.ContainsFunc(s.records, func(r admission.Build) bool { return r.ID == id && r.Stage == admission.BuildReady })
	}
	good, _ := s.make(build.Recipe{Steps: runs("one")})
	if !ready(good.ID) {
		t.Fatal("a build that ended well is not on record as that")
	}
	done := s.begin()
	path := filepath.Join(s.dir, "records", done.ID+".json") // as a daemon leaves it that is killed behind Keep
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(data), `"waiting"`, `"building"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	box, err := s.Create(t.Context(), sandbox.Request{Owner: owner(ann)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Life.Keep(t.Context(), box.Info().ID, sandbox.Keep{Names: []string{"x"}, Built: &sandbox.Built{Build: done.ID, Template: tpl}}); err != nil {
		t.Fatal(err)
	}
	s.open()
	if now, _ := s.look(done.ID); now.Status != build.Ready || now.Snapshot == "" {
		t.Fatalf("%+v", now)
	}
	if !ready(done.ID) {
		t.Error("a build is told as ready, and the log has no record of that")
	}
}
