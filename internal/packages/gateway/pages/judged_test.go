package pages

import (
	"context"
	"errors"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// oneAnswer is a door that gives the same to every question.
type oneAnswer struct {
	Door
	answer  door.IndexAnswer
	failure error
}

func (d oneAnswer) Index(context.Context, door.IndexAsk) (door.IndexAnswer, error) {
	return d.answer, d.failure
}

// noProtocol has a name and nothing else.
type noProtocol struct{ ecosystem.Protocol }

func (noProtocol) Ecosystem() pkgref.Ecosystem { return pkgref.Node }

// TestOnlyWholeAnswersJudge: a page is judged when each of its files has a verdict; by
// any other answer nothing is.
func TestOnlyWholeAnswersJudge(t *testing.T) {
	t.Parallel()
	p := &Page{Index: &ecosystem.Index{Project: "a", Files: []ecosystem.File{{Name: "a-1"}, {Name: "a-2"}}}}
	verdicts := []policy.Decision{{Effect: policy.Allow}, {Effect: policy.Deny}}
	for name, test := range map[string]struct {
		door oneAnswer
		want bool
	}{
		"whole":               {oneAnswer{answer: door.IndexAnswer{Epoch: "e", Verdicts: verdicts, OfFile: []int{1, 0}}}, true},
		"a file less":         {oneAnswer{answer: door.IndexAnswer{Epoch: "e", Verdicts: verdicts, OfFile: []int{1}}}, false},
		"a file more":         {oneAnswer{answer: door.IndexAnswer{Epoch: "e", Verdicts: verdicts, OfFile: []int{1, 0, 0}}}, false},
		"no such verdict":     {oneAnswer{answer: door.IndexAnswer{Epoch: "e", Verdicts: verdicts, OfFile: []int{1, 2}}}, false},
		"a negative verdict":  {oneAnswer{answer: door.IndexAnswer{Epoch: "e", Verdicts: verdicts, OfFile: []int{-1, 0}}}, false},
		"no epoch":            {oneAnswer{answer: door.IndexAnswer{Verdicts: verdicts, OfFile: []int{1, 0}}}, false},
		"files wanted always": {oneAnswer{answer: door.IndexAnswer{NeedFiles: true, Epoch: "e", Verdicts: verdicts, OfFile: []int{1, 0}}}, false},
		"an error":            {oneAnswer{answer: door.IndexAnswer{Epoch: "e", Verdicts: verdicts, OfFile: []int{1, 0}}, failure: errors.New("no record")}, false},
	} {
		ps := &Pages{cfg: Config{Door: test.door}}
		j, err := ps.Judge(t.Context(), Reader{Sandbox: "sb"}, Source{Protocol: noProtocol{}}, "a", p)
		if (err == nil) != test.want || (j.Page != nil) != test.want {
			t.Errorf("%s: %+v, %v", name, j, err)
		}
		if test.want && (j.Decision(0).Allowed() || !j.Decision(1).Allowed() || j.Ref().Name != "a") {
			t.Errorf("%s: %+v", name, j)
		}
	}
}
