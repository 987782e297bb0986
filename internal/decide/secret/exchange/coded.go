package exchange

import "strings"

// coded are the letters of base64 in a view, by their values, with ends of runs between.
type coded struct {
	values []byte
	at     []int32
}

// endOfRun is where letters do not go on.
const endOfRun = 0xff

// readRuns reads the runs of at least so many letters. open tells that the last goes on behind
// the view.
func (r *coded) readRuns(v view, least int, indents string) (open bool) {
	r.values, r.at = r.values[:0], r.at[:0]
	begin := 0
	for i := 0; i < len(v.b); i++ {
		if s := sextets[v.b[i]]; s != endOfRun {
			r.values, r.at = append(r.values, s), append(r.at, int32(i))
			continue
		}
		if len(r.values) == begin {
			continue
		}
		next := afterBreak(v.b, i, indents)
		if next == len(v.b) && next > i && v.open {
			return true
		}
		if next > i && next < len(v.b) && sextets[v.b[next]] != endOfRun {
			i = next - 1
			continue
		}
		if len(r.values)-begin < least {
			r.values, r.at = r.values[:begin], r.at[:begin]
			continue
		}
		r.values, r.at = append(r.values, endOfRun), append(r.at, int32(i))
		begin = len(r.values)
	}
	if len(r.values) == begin {
		return false
	}
	if !v.open && len(r.values)-begin < least {
		r.values, r.at = r.values[:begin], r.at[:begin]
		return false
	}
	if !v.open {
		r.values, r.at = append(r.values, endOfRun), append(r.at, int32(len(v.b)-1))
	}
	return v.open
}

// afterBreak is the place behind a line's end and what indents the next line, or the place
// itself.
func afterBreak(b []byte, i int, indents string) int {
	if b[i] != '\n' && b[i] != '\r' {
		return i
	}
	for i < len(b) && strings.IndexByte(indents, b[i]) >= 0 {
		i++
	}
	return i
}

// base64 decodes all runs, leaving so many letters of each out at first. left is where
// letters begin at the end that are no whole group yet, below 0 if there are none.
func (r *coded) base64(v view, u *view, phase int) (left int) {
	left = -1
	for begin := 0; begin < len(r.values); {
		end := begin
		for end < len(r.values) && r.values[end] != endOfRun {
			end++
		}
		i := begin + phase
		for ; i+3 < end; i += 4 {
			g, at := r.values[i:i+4], r.at[i:i+4]
			first, second := int32(v.startOf(int(at[0]))), int32(v.endOf(int(at[1])))
			third, fourth := int32(v.endOf(int(at[2]))), int32(v.endOf(int(at[3])))
			u.b = append(u.b, g[0]<<2|g[1]>>4, g[1]<<4|g[2]>>2, g[2]<<6|g[3])
			u.from, u.to = append(u.from, first, first, first), append(u.to, second, third, fourth)
		}
		if i < end {
			left = int(r.at[i])
		}
		if i+1 < end {
			u.addByte(r.values[i]<<2|r.values[i+1]>>4, v, left, int(r.at[i+1]))
		}
		if i+2 < end {
			u.addByte(r.values[i+1]<<4|r.values[i+2]>>2, v, left, int(r.at[i+2]))
		}
		if end < len(r.values) {
			u.addByte(0, v, int(r.at[end]), int(r.at[end])) // which no needle has
			left = -1
		}
		begin = end + 1
	}
	return left
}

// hexadecimal is base64 of the parts of runs that are digits.
func (r *coded) hexadecimal(v view, u *view, phase, least int, open bool) (left int) {
	for begin := 0; begin < len(r.values); begin++ {
		end := begin
		for end < len(r.values) {
			if _, is := nibble(r.values[end]); !is {
				break
			}
			end++
		}
		last := end == len(r.values) && open
		if end-begin < least && !last {
			begin = end
			continue
		}
		i := begin + phase
		for ; i+1 < end; i += 2 {
			high, _ := nibble(r.values[i])
			low, _ := nibble(r.values[i+1])
			u.addByte(high<<4|low, v, int(r.at[i]), int(r.at[i+1]))
		}
		switch {
		case last && i < end:
			return int(r.at[i])
		case last:
			return -1
		}
		u.addByte(0, v, int(r.at[end-1]), int(r.at[end-1]))
		begin = end
	}
	return -1
}
