package ranges

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"strconv"
	"strings"
)

// Parse parses a CIDR. It clears the bits after the prefix, as in 10.0.0.7/24.
func Parse(cidr string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(cidr)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is no range of addresses as 10.0.0.0/24 or fd00::/64", cidr)
	}
	return p.Masked(), nil
}

// At returns the address at offset, a decimal number, from the first of the range. It returns false if that is outside
// the range.
func At(p netip.Prefix, offset string) (netip.Addr, bool) {
	if offset == "" || len(offset) > 40 ||
		strings.ContainsFunc(offset, func(r rune) bool { return r < '0' || r > '9' }) {
		return netip.Addr{}, false
	}
	ip, fits := netip.Addr{}, false
	if n, err := strconv.ParseUint(offset, 10, 32); err == nil && p.Addr().Is4() {
		ip, fits = at4(p.Addr().As4(), n)
	} else {
		ip, fits = atLarge(p.Addr(), offset)
	}
	if !fits || !p.Contains(ip) {
		return netip.Addr{}, false
	}
	return ip, true
}

func at4(first [4]byte, offset uint64) (netip.Addr, bool) {
	var raw [4]byte
	n := uint64(binary.BigEndian.Uint32(first[:])) + offset
	binary.BigEndian.PutUint32(raw[:], uint32(n))
	return netip.AddrFrom4(raw), n <= math.MaxUint32
}

func atLarge(first netip.Addr, offset string) (netip.Addr, bool) {
	n, _ := new(big.Int).SetString(offset, 10)
	n.Add(n, new(big.Int).SetBytes(first.AsSlice()))
	if n.BitLen() > first.BitLen() {
		return netip.Addr{}, false
	}
	return netip.AddrFromSlice(n.FillBytes(make([]byte, first.BitLen()/8)))
}

// Usable returns the first and the last address that may be allocated, and how many there are, at most 2147483647. It
// leaves out the network and broadcast addresses, unless there are no others.
func Usable(p netip.Prefix) (first, last netip.Addr, count int32) {
	first, last = p.Addr(), Last(p)
	host := p.Addr().BitLen() - p.Bits()
	if host >= 31 {
		count = math.MaxInt32
	} else {
		count = int32(1) << host
	}
	if host >= 2 {
		first, last = first.Next(), last.Prev()
		if host < 31 {
			count -= 2
		}
	}
	return first, last, count
}

// Last returns the last address of a range.
func Last(p netip.Prefix) netip.Addr {
	raw := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(raw)*8; bit++ {
		raw[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(raw)
	return last
}

// MaxSlices is how many slices a range may be cut into.
const MaxSlices = 65536

// Slices are the equal parts of a range.
type Slices struct {
	whole netip.Prefix
	bits  int
}

// Cut cuts a range into slices of a prefix length, which may be written with a slash.
//
// Errors: a range that does not begin at its network address, slices larger than the range, more than [MaxSlices].
func Cut(cidr, size string) (Slices, error) {
	whole, err := Parse(cidr)
	if err != nil {
		return Slices{}, err
	}
	if written, _ := netip.ParsePrefix(cidr); written != whole {
		return Slices{}, fmt.Errorf("range %s does not begin at its network address, %s", cidr, whole)
	}
	bits, err := strconv.Atoi(strings.TrimPrefix(size, "/"))
	if err != nil || bits < 0 || bits > whole.Addr().BitLen() {
		return Slices{}, fmt.Errorf("slice size %q is no prefix length of %s", size, cidr)
	}
	if bits < whole.Bits() {
		return Slices{}, fmt.Errorf("slices of /%d are larger than the range %s", bits, cidr)
	}
	if s := (Slices{whole, bits}); bits-whole.Bits() <= 16 && s.Len() <= MaxSlices {
		return s, nil
	}
	return Slices{}, fmt.Errorf("range %s makes more than %d slices of /%d", cidr, MaxSlices, bits)
}

// Len returns the number of slices.
func (s Slices) Len() int { return 1 << (s.bits - s.whole.Bits()) }

// Whole returns the range that was cut.
func (s Slices) Whole() netip.Prefix { return s.whole }

// At returns the i-th slice.
func (s Slices) At(i int) netip.Prefix {
	raw := s.whole.Addr().AsSlice()
	for bit := range s.bits - s.whole.Bits() {
		if i>>bit&1 == 1 {
			at := s.bits - 1 - bit
			raw[at/8] |= 0x80 >> (at % 8)
		}
	}
	first, _ := netip.AddrFromSlice(raw)
	return netip.PrefixFrom(first, s.bits)
}

// Of returns the number of the slice that contains ip, or false if none does.
func (s Slices) Of(ip netip.Addr) (int, bool) {
	if !s.whole.Contains(ip) {
		return 0, false
	}
	n, raw := 0, ip.AsSlice()
	for bit := s.whole.Bits(); bit < s.bits; bit++ {
		n = n<<1 | int(raw[bit/8]>>(7-bit%8)&1)
	}
	return n, true
}

// Parse returns the number of the slice that is written as cidr, or false if none is.
func (s Slices) Parse(cidr string) (int, bool) {
	p, err := netip.ParsePrefix(cidr)
	if err != nil || p.Bits() != s.bits || p != p.Masked() {
		return 0, false
	}
	return s.Of(p.Addr())
}

// Containing returns all ranges that contain the range, from the largest, /0, to the range itself.
func Containing(p netip.Prefix) []netip.Prefix {
	all := make([]netip.Prefix, 0, p.Bits()+1)
	for bits := range p.Bits() + 1 {
		all = append(all, netip.PrefixFrom(p.Addr(), bits).Masked())
	}
	return all
}
