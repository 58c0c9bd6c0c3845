package chapter07

// A channelQueue is the first idea: a channel of keys.
type channelQueue chan string

func (q channelQueue) Add(key string) { q <- key }

func (q channelQueue) Get() string { return <-q }

func (q channelQueue) Done(string) {}
