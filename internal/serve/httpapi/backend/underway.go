package backend

import (
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
)

// Bounds of the requests that are under way at one time. One that follows something (a command, a watch,
// events, a port) takes 40 to 50 KiB of the daemon, and of the keeper as much again, for as long as its
// client likes.
const (
	UnderwayEach = 1_024 // of one token
	UnderwayAll  = 4_096 // of all tokens
	// UnderwaySure is how many each token may have although all others have UnderwayAll, up to UnderwayMost
	// in all: no few of them keep another from asking.
	UnderwaySure = 64
	UnderwayMost = 8_192
	// underwayEnds is how many more of a token may be under way that end something: whoever has used up the
	// others, or finds them used up by other tokens, can still end a command or a sandbox.
	underwayEnds = 64
	// UnderwayStrangers is how many requests may be under way that anybody may make, without a token: of all strangers
	// together, who have no longer than httphead.Uncounted to take what they are answered. A client that is refused is answered at
	// once, and is not among them.
	UnderwayStrangers = 256
)

// Underway counts the requests that are under way, by the token whose they are. Every wire has each request
// of a token join before it is handled, so a new route that follows something is bounded like all others. Over HTTP/2 one
// is under way until its client has taken all of the answer, if its server is Hurried.
// Safe for concurrent use.
type Underway struct {
	mu   sync.Mutex     // guards all
	of   map[string]int // but for those that are in ends
	all  int            // of
	ends map[string]int // that end something, of which each has so many whatever else is under way
	// strangers is of requests without a token, which leave those of tokens as many as there are.
	strangers int
}

// NewUnderway makes one for all wires of a daemon.
func NewUnderway() *Underway { return &Underway{of: map[string]int{}, ends: map[string]int{}} }

// Join counts a request of an owner's in, who is named as to Room.Enter; leave counts it out, and is called
// once. fault.ErrExhausted: there are too many.
func (u *Underway) Join(owner string, r *http.Request) (leave func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if endsSomething(r) && u.ends[owner] < underwayEnds {
		u.ends[owner]++
		return httphead.WhenOver(r.Context(), func() { u.leaveUnderway(u.ends, owner, 0) }), nil
	}
	switch of := u.of[owner]; {
	case of >= UnderwayEach:
		return nil, fault.Exhausted(0, "%d requests of this token are under way, with those that follow something; end one of them first", UnderwayEach)
	case u.all >= UnderwayAll && (of >= UnderwaySure || u.all >= UnderwayMost):
		return nil, fault.Exhausted(time.Second, "%d requests of all tokens are under way, with those that follow something; try again", u.all)
	}
	u.of[owner]++
	u.all++
	return httphead.WhenOver(r.Context(), func() { u.leaveUnderway(u.of, owner, 1) }), nil
}

// JoinStranger counts a request in that needs no token, and shows no valid one; leave counts it out, and is called once.
// fault.ErrExhausted: there are too many.
func (u *Underway) JoinStranger(r *http.Request) (leave func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.strangers >= UnderwayStrangers {
		return nil, fault.Exhausted(time.Second, "%d requests without a valid token are under way; try again", UnderwayStrangers)
	}
	u.strangers++
	return httphead.WhenSoonOver(r.Context(), func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.strangers--
	}), nil
}

func (u *Underway) leaveUnderway(from map[string]int, owner string, ofAll int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all -= ofAll
	if from[owner]--; from[owner] == 0 {
		delete(from, owner)
	}
}

// endsSomething tells whether a request ends, or signals, what a token has.
func endsSomething(r *http.Request) bool {
	return r.Method == http.MethodDelete || r.Method == http.MethodPost && slices.Contains([]string{"signal", "SendSignal", "pause"}, path.Base(r.URL.Path))
}

// Handler has the requests of tokens join before next gets them, which takes a token as Authorization: Bearer
// and from nowhere else. Those that show no valid one are next's to turn away.
func (u *Underway) Handler(check func(secret string) (token.Token, bool), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		words := strings.Fields(r.Header.Get("Authorization"))
		if len(words) != 2 || !strings.EqualFold(words[0], "Bearer") {
			next.ServeHTTP(w, r)
			return
		}
		t, known := check(words[1])
		if !known {
			next.ServeHTTP(w, r)
			return
		}
		leave, err := u.Join(t.ID, r)
		if err != nil {
			WriteExhausted(w, err)
			return
		}
		defer leave()
		next.ServeHTTP(w, r)
	})
}
