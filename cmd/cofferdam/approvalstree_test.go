package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// oneTree is a tree of two releases, one of which is denied by itself.
func oneTree() approval.Request {
	member := func(id, name string, depth int, state approval.State) approval.Member {
		own := approval.Request{
			ID: id, State: state, Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: name, Version: "1.0"}, Upstream: "https://index.example/",
			Files: []approval.File{{Name: name + ".whl", Kind: "wheel", Size: 2000, Digests: []string{"sha256:" + name}}},
			Asks:  []approval.Asker{{Run: "r1", WantedBy: []string{"x requires " + name}}}, Asked: 1, Tree: "ap-tree",
		}
		return approval.Member{ID: id, Package: own.Package, Depth: depth, Digests: []string{"sha256:" + name}, State: state, Request: &own}
	}
	return approval.Request{
		ID: "ap-tree", State: approval.Pending, Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: "app", Version: "1.0"}, Asked: 1,
		Reason: "it waits", Notes: []string{"a note"}, Asks: []approval.Asker{{Run: "r1"}},
		Members: []approval.Member{member("ap-app", "app", 0, approval.Pending), member("ap-lib", "li\x1bb", 1, approval.Pending), member("ap-bad", "bad", 1, approval.Denied)},
	}
}

func TestATreeIsShownWithAllThatIsInIt(t *testing.T) {
	var out strings.Builder
	if err := showRequest(&out, oneTree(), time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"ap-tree  python app 1.0 and 2 more  pending\n", "  note          a note\n", "  3 releases, each a request of its own:\n",
		"  ap-app   pending  app 1.0        wheel, 2 kB\n", "  ap-bad   denied     bad 1.0      wheel, 2 kB\n", `ap-lib  python li\x1bb 1.0  pending`,
		"  wanted by     x requires app\n", "sha256:app\n", "lets the run that asked (run r1) install exactly the files of", "cofferdam approvals approve ap-tree\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
}

// An approval is of what was shown, and a release that was answered by itself stays so.
func TestATreeIsAnsweredAsItWasShown(t *testing.T) {
	digests := map[string][]string{}
	noteShownDigests(digests, oneTree())
	if text := fmt.Sprint(digests); text != "map[ap-app:[sha256:app] ap-lib:[sha256:li\x1bb]]" {
		t.Errorf("bound is %q", text)
	}
	if all := expanded([]approval.Request{oneTree(), *oneTree().Members[0].Request}); len(all) != 2 || all[0].ID != "ap-app" {
		t.Errorf("its releases are %+v", all)
	}
}

func TestTreesAreListedAboveTheirMembers(t *testing.T) {
	tree := oneTree()
	requests := []approval.Request{*tree.Members[1].Request, {ID: "ap-other", Package: tree.Package}, tree, *tree.Members[0].Request}
	var got []string
	for _, l := range underTrees(requests) {
		got = append(got, l.indent+l.ID)
	}
	if text := strings.Join(got, ","); text != "ap-other,ap-tree,  ap-app,  ap-lib" {
		t.Errorf("the list is %s", text)
	}
}

// However many files of a tree wait, a person is told of one request, and of one answer.
func TestHoldsOfATreeAreToldAsOne(t *testing.T) {
	var said []string
	teller := holdTeller{say: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}
	hold := func(id string) api.Hold {
		return api.Hold{Request: id, Tree: "ap-tree", Package: "python " + id + " 1", Reason: "why"}
	}
	answer := func(h api.Hold) string { return h.Tree + " answered" }
	teller.update([]api.Hold{hold("ap-a"), hold("ap-b")}, answer)
	teller.update([]api.Hold{hold("ap-a"), hold("ap-b"), hold("ap-c")}, answer)
	teller.update([]api.Hold{hold("ap-c")}, answer)
	teller.update(nil, answer)
	if len(said) != 3 || !strings.Contains(said[1], "approve ap-tree (") || said[2] != "ap-tree answered" {
		t.Errorf("said is %q", said)
	}
	if text := waitsFor([]api.Hold{hold("ap-a"), hold("ap-b"), {Request: "ap-x", Package: "python x 1"}}); text != "ap-tree (python ap-a 1 and its install), ap-x (python x 1)" {
		t.Errorf("the list says %q", text)
	}
}
