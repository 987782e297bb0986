package admission

import (
	"slices"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
)

// reached are the secrets that the configuration has for hosts that a sandbox has connected to, or may, whatever its policy
// names: of a host only once it was judged and let through. Another run may have had such a host keep one, in a note or a setting, and this one may ask for it. They are
// never fetched for it: of them the values are looked for that runs and tools have had. It is safe for concurrent use.
type reached struct {
	mu    sync.Mutex // guards all below
	names []string   // only grow
}

func (r *reached) addNames(names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		if !slices.Contains(r.names, name) {
			r.names = append(r.names, name)
		}
	}
}

// listSecrets lists the secrets, as they may be had.
func (r *reached) listSecrets() (wants []secret.Want) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range r.names {
		wants = append(wants, secret.Want{Name: name, Known: true})
	}
	return wants
}

// momentBits are the bits of a moment that the gateway is told, which count what became known; those above them count the
// secrets of which it was told.
const momentBits = 40

// momentOf is the moment that the gateway is told of one of the broker's.
func momentOf(moment uint64, told []secret.Want) uint64 {
	return uint64(len(told))<<momentBits | moment
}

// sinceOf is the broker's moment of one that the gateway was told. If there are more secrets by now, that is the
// first one: of those nothing was told.
func sinceOf(since uint64, by []secret.Want) uint64 {
	if since>>momentBits != uint64(len(by)) {
		return 0
	}
	return since & (1<<momentBits - 1)
}
