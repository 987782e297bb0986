package daemon

import (
	"slices"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/egress/credentials"
	"github.com/cofferdam-dev/cofferdam/internal/egress/scanning"
	"github.com/cofferdam-dev/cofferdam/internal/scan"
	"github.com/cofferdam-dev/cofferdam/internal/scan/personal"
	"github.com/cofferdam-dev/cofferdam/internal/scan/secrets"
)

// scanned is what sees to the requests that a gateway carries: they are scanned before
// credentials are put in.
func scanned(asks door.Door) scanning.Exchanges {
	set := sync.OnceValue(func() *scan.Set { return scan.NewSet(slices.Concat(secrets.Rules(), personal.Rules())...) })
	return scanning.Exchanges{Door: asks, Set: set, Then: credentials.New(asks)}
}
