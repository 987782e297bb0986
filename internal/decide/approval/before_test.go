package approval_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// TestWhatIsNewInside: of an upgrade a person is told what it runs, brings as machine code, and has to be read
// that the approved release did not; a line that only moved is not new.
func TestWhatIsNewInside(t *testing.T) {
	t.Parallel()
	q, err := approval.Open(t.Context(), approval.Config{Store: approvaltest.NewMemory(), Log: &approvaltest.Log{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	ask := func(version string, in evidence.Inside) approval.Request {
		t.Helper()
		r, err := q.Ask(t.Context(), approval.Ask{
			Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: "foo", Version: version}, Upstream: "https://index.example/", Run: "r", Sandbox: "s", Policy: "p", Rule: "r",
			Files: []approval.File{{Name: "foo-" + version + ".tar.gz", Kind: "sdist", Digests: []string{"sha256:" + version}}}, Evidence: evidence.Evidence{Inside: &in},
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := ask("1.0", evidence.Inside{Builds: []string{"setup.py (1 bytes), which is a program", "build backend: setuptools, since it names none"}, Suspect: []string{"setup.py:3 runs programs: make"}, Starts: []string{"a.pth"}, Native: []string{"a.so"}})
	if _, err := q.Answer(t.Context(), "bob", approval.Verdict{IDs: []string{first.AnswerID}, State: approval.Approved}); err != nil {
		t.Fatal(err)
	}
	next := ask("1.1", evidence.Inside{
		Suspect: []string{"setup.py:1 uses the network: curl", "setup.py:9 runs programs: make"}, Starts: []string{"a.pth", "b.pth"}, Native: []string{"a.so", "b.so"},
		Builds: []string{"setup.py (2 bytes), which is a program", "A PROGRAM THAT IT BRINGS ITSELF is its build backend: own, in backend-path ."},
	})
	want := []string{
		"has a line to read that it did not have before: setup.py:1 uses the network: curl",
		"is built by something that it was not before: A PROGRAM THAT IT BRINGS ITSELF is its build backend: own, in backend-path .",
		"runs something at each start that it did not before: b.pth", "has machine code that it did not have before: b.so",
	}
	if diff := cmp.Diff(want, next.Evidence.Changes); diff != "" {
		t.Error(diff)
	}
	before, err := approval.ApprovedBefore(t.Context(), q, next.Package)
	if err != nil || len(before) != 1 || before[0].ID != first.ID {
		t.Errorf("%v, %v", before, err)
	}
}
