package door

import (
	"maps"
	"slices"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// answers are the index answers that the gateway still has, so that the daemon
// need not send thousands of verdicts again. The oldest page leaves first.
type answers struct {
	mostPages, mostFiles int

	mu    sync.Mutex // guards all below
	pages map[pageKey]epochs
	order []pageKey
	files int
}

type pageKey struct {
	pkg    pkgref.Ref
	digest string
}

// epochs are answers about one page. A map of them is never changed once it is
// in answers: it is replaced.
type epochs map[string]IndexAnswer

func (e epochs) epochs() []string {
	if len(e) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(e))
}

// maxEpochs of one page: as many policies and sets of requirements.
const maxEpochs = 8

func newAnswers(mostPages, mostFiles int) *answers {
	return &answers{mostPages: mostPages, mostFiles: mostFiles, pages: map[pageKey]epochs{}}
}

func (a *answers) knownEpochs(ask IndexAsk) epochs {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pages[pageKey{ask.Package, ask.IndexDigest}]
}

func (a *answers) keepAnswer(ask IndexAsk, answer IndexAnswer) {
	if answer.NeedFiles || answer.Epoch == "" {
		return
	}
	answer.RequestID, answer.WantEdges = "", false
	key := pageKey{ask.Package, ask.IndexDigest}
	a.mu.Lock()
	defer a.mu.Unlock()
	old, known := a.pages[key]
	if !known {
		a.order = append(a.order, key)
	}
	next := epochs{}
	if len(old) < maxEpochs {
		maps.Copy(next, old)
	}
	next[answer.Epoch] = answer
	a.files += next.countFiles() - old.countFiles()
	a.pages[key] = next
	for len(a.order) > 1 && (len(a.order) > a.mostPages || a.files > a.mostFiles) {
		a.files -= a.pages[a.order[0]].countFiles()
		delete(a.pages, a.order[0])
		a.order = slices.Delete(a.order, 0, 1)
	}
}

func (e epochs) countFiles() int {
	n := 0
	for _, a := range e {
		n += len(a.OfFile) + len(a.Verdicts)
	}
	return n
}
