package door

import "context"

// Connect implements Door.
func (c *Client) Connect(ctx context.Context, ask ConnectAsk) (a Answer, err error) {
	err = c.call(ctx, callConnect, ask, &a)
	return a, err
}

// Disconnected implements Door.
func (c *Client) Disconnected(ctx context.Context, d Disconnection) error {
	return c.call(ctx, callDisconnected, d, &nothing{})
}

// HostRefused implements Door.
func (c *Client) HostRefused(ctx context.Context, h HostRefusal) (a Answer, err error) {
	err = c.call(ctx, callHostRefused, h, &a)
	return a, err
}

// Standing implements Door.
func (c *Client) Standing(ctx context.Context, sandbox string, connections []uint64) (ended []uint64, err error) {
	err = c.call(ctx, callStanding, standingCall{sandbox, connections}, &ended)
	return ended, err
}
