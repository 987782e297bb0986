package channel

// growth follows the size of a stream's buffer, a bytes.Buffer that is made for the first frame and
// filled by ReadFrom: it wants room for minRead bytes also when a frame has ended.
type growth struct {
	size, offset, unread int64 // bytes
}

const minRead = 512

func (g *growth) addBytes(n int64) {
	if g.size == 0 {
		g.size = n
	}
	for {
		if g.unread == 0 {
			g.offset = 0
		}
		if g.size-g.offset-g.unread < minRead {
			if g.size/2-g.unread < minRead {
				g.size = max(g.offset+g.unread+minRead, 2*(g.size-g.offset))
			}
			g.offset = 0
		}
		if n == 0 {
			return
		}
		some := min(n, g.size-g.offset-g.unread)
		g.unread += some
		n -= some
	}
}

func (g *growth) takeBytes(n int64) {
	n = min(n, g.unread)
	g.offset, g.unread = g.offset+n, g.unread-n
}
