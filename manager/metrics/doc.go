// Package metrics exports the metrics of a manager to Prometheus, under the names that client-go's queues and
// controller-runtime's controllers have established.
//
// A [Registry] belongs to one manager. There is no global one, so that two managers in one process do not interfere.
// Counters and gauges are read at a scrape, from the counters that queues, informers and controllers maintain anyway;
// only the two durations of a queue are histograms that are written as work goes on. Queues have the metrics of package
// workqueue/metrics, informers those of informer/metrics.
//
//	workqueue_*           name        depth, adds, retries, durations, unfinished work
//	informer_*            resource    objects in the cache, events, lists, watches, errors, handlers that are behind
//	controller_runtime_*  controller  reconciles by result, errors, panics, busy workers
//	leader_election_*     name        1 while this process leads
//	client_*              outcome     reads that waited for own writes, and own writes not in the cache yet
//	events_*              result      recorded events by outcome
package metrics
