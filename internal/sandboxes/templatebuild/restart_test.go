package templatebuild_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/templatebuild"
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
	good, _ := s.make(templatebuild.Recipe{Steps: runs("one")})
	if !ready(good.ID) {
		t.Fatal("a build that ended well is not on record as that")
	}
	done := s.begin()
	if err := s.RecordBuild(t.Context(), "", admission.Build{ID: done.ID, Stage: admission.BuildBegun}); err != nil {
		t.Fatal(err)
	}
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
	if now, _ := s.look(done.ID); now.Status != templatebuild.Ready || now.Snapshot == "" {
		t.Fatalf("%+v", now)
	}
	if !ready(done.ID) {
		t.Error("a build is told as ready, and the log has no record of that")
	}
}

// TestABuildHasOneEndOnRecord: wherever between its result and its own file its daemon is killed, and also when it
// is killed again at the start.
func TestABuildHasOneEndOnRecord(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	ends := func(id string) (n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, r := range s.records {
			if r.ID == id && (r.Stage == admission.BuildReady || r.Stage == admission.BuildFailed) {
				n++
			}
		}
		return n
	}
	done, _ := s.make(templatebuild.Recipe{Steps: runs("one")})
	if done.Status != templatebuild.Ready || ends(done.ID) != 1 {
		t.Fatalf("the control has %d ends: %+v", ends(done.ID), done)
	}
	path := filepath.Join(s.dir, "records", done.ID+".json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	killed := strings.Replace(string(data), `"ready"`, `"building"`, 1) // as one leaves it behind the record
	for range 2 {
		if err := os.WriteFile(path, []byte(killed), 0o600); err != nil {
			t.Fatal(err)
		}
		s.open()
		if now, _ := s.look(done.ID); now.Status != templatebuild.Ready || now.Snapshot != done.Snapshot {
			t.Errorf("after the start it is told as %+v", now)
		}
		if n := ends(done.ID); n != 1 {
			t.Errorf("a build that was begun once has %d ends on record", n)
		}
	}
}
