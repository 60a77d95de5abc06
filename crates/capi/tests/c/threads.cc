// The header in C++: handles that destroy themselves, and several threads on one keyspace.
#include "lsmith.h"
#include "check.h"
#include <memory>
#include <string>
#include <thread>
#include <vector>

template <auto destroy> struct Destroy {
    template <typename T> void operator()(T *handle) const { destroy(handle); }
};

using Store = std::unique_ptr<lsmith_t, Destroy<lsmith_close>>;
using Keyspace = std::unique_ptr<lsmith_keyspace_t, Destroy<lsmith_keyspace_destroy>>;
using Iterator = std::unique_ptr<lsmith_iterator_t, Destroy<lsmith_iter_destroy>>;

int main(int argc, char **argv) {
    CHECK(argc == 2);
    lsmith_error_t *error = nullptr;
    std::string path = std::string(argv[1]) + "/store";
    Store store(lsmith_open(path.c_str(), "memtable_bytes=64KiB", &error));
    FINE(error);
    Keyspace keyspace(lsmith_keyspace(store.get(), "threads", nullptr, &error));
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; thread++) {
        threads.emplace_back([&keyspace, thread] {
            lsmith_error_t *error = nullptr;
            for (int number = 0; number < 500; number++) {
                std::string key = std::to_string(thread) + "/" + std::to_string(1000 + number);
                lsmith_put(keyspace.get(), LSMITH_BUFFER, key.data(), key.size(), "v", 1, &error);
            }
            FINE(error);
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    Iterator iter(lsmith_create_iterator(keyspace.get(), nullptr, &error));
    size_t count = 0;
    std::string before;
    for (lsmith_iter_seek_to_first(iter.get()); lsmith_iter_valid(iter.get());
         lsmith_iter_next(iter.get())) {
        size_t len;
        const char *key = lsmith_iter_key(iter.get(), &len);
        CHECK(before < std::string(key, len));
        before.assign(key, len);
        count++;
    }
    lsmith_iter_get_error(iter.get(), &error);
    FINE(error);
    CHECK(count == 2000);
    return 0;
}
