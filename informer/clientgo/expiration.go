package clientgo

import (
	"sync"
	"time"

	peer "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// NewTTLStore returns a store whose objects are gone once ttl has passed since they were last written; 0 or less keeps
// them.
func NewTTLStore(key KeyFunc, ttl time.Duration) Store {
	return NewExpirationStore(key, &TTLPolicy{TTL: ttl, Clock: clock.RealClock{}})
}

// NewExpirationStore returns a store whose objects are gone once policy says so. An object that has expired is removed
// when somebody reads it: until then ListKeys has its key, as in client-go.
func NewExpirationStore(key KeyFunc, policy ExpirationPolicy) Store {
	stamped := func(entry any) (string, error) { return key(entry.(*TimestampedEntry).Obj) }
	return &expirationStore{Store: NewStore(stamped), key: key, policy: policy}
}

// expirationStore is a Store of TimestampedEntry that its users see as one of the objects in them.
type expirationStore struct {
	Store
	key    KeyFunc
	policy ExpirationPolicy
	// mu is held from looking at an entry until it is removed, so that a newer one is not removed in its place.
	mu sync.Mutex
}

func (s *expirationStore) Add(obj any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unwrapped(obj, s.Store.Add(stamp(obj)))
}

// Update is Add: the object lasts as long as a new one.
func (s *expirationStore) Update(obj any) error { return s.Add(obj) }

func (s *expirationStore) Delete(obj any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unwrapped(obj, s.Store.Delete(stamp(obj)))
}

func (s *expirationStore) Replace(objs []any, version string) error {
	entries := make([]any, len(objs))
	for i, obj := range objs {
		if _, err := s.key(obj); err != nil {
			return KeyError{Obj: obj, Err: err}
		}
		entries[i] = stamp(obj)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Store.Replace(entries, version)
}

func (s *expirationStore) Get(obj any) (item any, exists bool, err error) {
	key, err := s.key(obj)
	if err != nil {
		return nil, false, KeyError{Obj: obj, Err: err}
	}
	return s.GetByKey(key)
}

func (s *expirationStore) GetByKey(key string) (item any, exists bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, exists, err := s.Store.GetByKey(key)
	if err != nil || !exists {
		return nil, false, err
	}
	entry := found.(*TimestampedEntry)
	if s.policy.IsExpired(entry) {
		return nil, false, s.Store.Delete(entry)
	}
	return entry.Obj, true, nil
}

func (s *expirationStore) List() []any {
	all := []any{}
	for _, key := range s.ListKeys() {
		if obj, exists, err := s.GetByKey(key); err == nil && exists {
			all = append(all, obj)
		}
	}
	return all
}

// unwrapped makes an error name the object instead of its entry.
func (s *expirationStore) unwrapped(obj any, err error) error {
	if keyErr, ok := err.(KeyError); ok { //nolint:errorlint // Stores return it as it is.
		return KeyError{Obj: obj, Err: keyErr.Err}
	}
	return err
}

func stamp(obj any) *TimestampedEntry { return &TimestampedEntry{Obj: obj, Timestamp: time.Now()} }

var _ peer.Store = (*expirationStore)(nil)
