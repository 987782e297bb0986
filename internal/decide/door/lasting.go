package door

import (
	"context"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// goneTime bounds how long a question goes on to be judged whose asker has gone: it may wait for its turn to be.
const goneTime = time.Minute

type (
	clientKey struct{} // of the context of whoever has asked
	lifeKey   struct{} // of that of the daemon, as far as it answers the gateway
)

// Lasting is the context in which a question is judged and put on record: it does not end because whoever asked has
// gone, or a guest could choose what is on record by going in time. A wait for a person, a tool or a build does end
// with its asker: that is ClientOf of it. It ends with the daemon's part of the door, and some time after the asker
// has gone.
func Lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	lasting, cancel := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), clientKey{}, ctx))
	stop := safego.When(ctx, func() { // what it stops is past by then, or ends by itself
		late := safego.After(goneTime, cancel)
		safego.When(lasting, func() { late.Stop() })
	})
	stopLife := func() bool { return true }
	if life, known := ctx.Value(lifeKey{}).(context.Context); known {
		stopLife = safego.When(life, cancel)
	}
	return lasting, func() {
		stop()
		stopLife()
		cancel()
	}
}

// ClientOf is the context of whoever asked what is judged in a Lasting one. Another is its own.
func ClientOf(ctx context.Context) context.Context {
	if client, known := ctx.Value(clientKey{}).(context.Context); known {
		return client
	}
	return ctx
}
