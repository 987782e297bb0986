package daemon

import (
	"slices"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/personal"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/secrets"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/credentials"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/scanning"
)

// scanned is what sees to the requests that a gateway carries: they are scanned before
// credentials are put in.
func scanned(asks door.Secrets) scanning.Exchanges {
	set := sync.OnceValue(func() *dlp.Set { return dlp.NewSet(slices.Concat(secrets.Rules(), personal.Rules())...) })
	return scanning.Exchanges{Door: asks, Set: set, Then: credentials.New(asks)}
}
