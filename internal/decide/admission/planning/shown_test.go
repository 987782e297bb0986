package planning

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// shownNothing is a run of which nothing is to be judged.
type shownNothing struct{}

func (shownNothing) Judge(context.Context, pkgref.Ref, ledger.Origin) (*policy.Judge, error) {
	panic("a release that was not shown is judged")
}

func (shownNothing) Requirements(pkgref.Ref) []door.Requirement { return nil }

// A page past what a plan remembers was shown all the same: what is said of its releases is the bound, and not
// that the resolver made them up.
func TestABoundOfAPlanIsToldAsOne(t *testing.T) {
	t.Parallel()
	of := pkgref.Ref{Ecosystem: pkgref.Node, Name: "express", Version: "4.0.0"}
	ask := door.IndexAsk{Package: of.Project(), Files: []door.File{{Name: "express-4.0.0.tgz", Version: "4.0.0"}}}
	for room, want := range map[bool]string{true: "never showed it", false: "more than a plan remembers"} {
		was := NewShown()
		was.Page(ask, func(int64) bool { return room })
		other := of
		other.Name = "other"
		made, err := Weigh(t.Context(), shownNothing{}, was, []Choice{{Package: other}})
		if err != nil || len(made.Releases) != 1 || !strings.Contains(made.Releases[0].Problem, want) {
			t.Errorf("with room %t: %+v %v", room, made.Releases, err)
		}
	}
}

// So is a file past it.
func TestABoundOfAPlansFilesIsToldAsOne(t *testing.T) {
	t.Parallel()
	was := NewShown()
	express := pkgref.Ref{Ecosystem: pkgref.Node, Name: "express"}
	for i := range maxFiles - 1 {
		express.Version = "1.0." + strconv.Itoa(i)
		was.read[express] = nil
	}
	express.Version = "2.0.0"
	if was.File(door.FileAsk{Package: express}, Reading{}); strings.Contains(was.lacking(), "more than") {
		t.Error("the last that there is room for is told as past the bound")
	}
	express.Version = "2.0.1"
	was.File(door.FileAsk{Package: express}, Reading{})
	if said := was.lacking(); !strings.Contains(said, "more than a plan remembers") {
		t.Error(said)
	}
}
