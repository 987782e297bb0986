package advisory

// maxNear is the largest distance that counts as near.
const maxNear = 2

// countEdits counts the letters that must be added, left out, exchanged or
// swapped with their neighbour to make b of a, no letter twice; maxNear+1 if
// there are more than maxNear.
func countEdits(a, b string) int {
	const far = maxNear + 1
	if len(a) < len(b) {
		a, b = b, a
	}
	if len(a)-len(b) > maxNear {
		return far
	}
	// Three rows of the table, of which only a band of 2*maxNear+1 around the
	// diagonal can matter: row[k] is for column i+k-maxNear.
	const width = 2*maxNear + 1
	var before, above, row [width]int
	for k := range width {
		above[k] = max(k-maxNear, 0)
		if k < maxNear {
			above[k] = far
		}
	}
	for i := 1; i <= len(a); i++ {
		least := far
		for k := range width {
			j := i + k - maxNear
			row[k] = far
			switch {
			case j < 0 || j > len(b):
				continue
			case j == 0:
				row[k] = min(i, far)
			default:
				row[k] = min(above[k]+boolInt(a[i-1] != b[j-1]), far)
				if k > 0 {
					row[k] = min(row[k], row[k-1]+1) // #nosec G602 -- k > 0
				}
				if k+1 < width {
					row[k] = min(row[k], above[k+1]+1)
				}
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					row[k] = min(row[k], before[k]+1)
				}
			}
			least = min(least, row[k])
		}
		if least == far {
			return far
		}
		before, above = above, row
	}
	return above[len(b)-len(a)+maxNear]
}

// letters is the set of a name's characters; names that differ in n letters
// differ in at most 2n of these bits.
func letters(name string) uint64 {
	var set uint64
	for i := range len(name) {
		set |= 1 << letterBit(name[i])
	}
	return set
}

func letterBit(c byte) uint {
	switch {
	case 'a' <= c && c <= 'z':
		return uint(c - 'a')
	case 'A' <= c && c <= 'Z':
		return uint(c - 'A')
	case '0' <= c && c <= '9':
		return 26 + uint(c-'0')
	}
	return 36 + uint(c)%28
}
