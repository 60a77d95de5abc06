package lsmith;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;

import java.net.URL;
import java.net.URLClassLoader;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Promised: plugins that each have a class loader of their own can each have lsmith. */
class NativeTest {
    @Test
    void classLoadersOfOneProcessEachLoadTheLibrary() throws Exception {
        URL classes = Native.class.getProtectionDomain().getCodeSource().getLocation();
        Set<Class<?>> found = new HashSet<>();
        for (int count = 0; count < 2; count++) {
            ClassLoader platform = ClassLoader.getPlatformClassLoader();
            try (URLClassLoader loader = new URLClassLoader(new URL[] {classes}, platform)) {
                Class<?> policy = loader.loadClass("lsmith.Policy");
                assertNotSame(Policy.class, policy);
                found.add(policy);
                try (AutoCloseable made = (AutoCloseable)
                        policy.getConstructor(String.class).newInstance("tiered(ratio=5)")) {
                    Object spec = policy.getMethod("spec").invoke(made);
                    try (Policy here = new Policy("tiered(ratio=5)")) {
                        assertEquals(here.spec(), spec);
                    }
                }
            }
        }
        assertEquals(2, found.size());
    }
}
